(** Theorem 2, "if": a model that meets the conditions of Karush, Kuhn and Tucker is
    the only best one at its weight, and no model beats it. Nor does any beat the two
    ends.

    Li et al. 2020, Theorem 2 (1); notebook 03, claims T2.1 and T2.2.
    In Python: qdtheory.pareto_optimum. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Require Import QD.Sums QD.Theorem3.
Open Scope R_scope.

Definition strictly_concave (g : R -> R) : Prop :=
  forall x y t, 0 <= x <= 1 -> 0 <= y <= 1 -> x <> y -> 0 < t < 1 ->
    (1 - t) * g x + t * g y < g ((1 - t) * x + t * y).

(** The derivative within [0, 1]: at 0 from the right, where it may be infinite, and
    at 1 from the left. *)
Definition slope (g : R -> R) (x : R) (l : Rbar) : Prop :=
  filterlim (fun y => (g y - g x) / (y - x))
    (within (fun y => 0 <= y <= 1) (locally' x)) (Rbar_locally l).

Lemma derivative_is_slope g x l : is_derive g x l -> slope g x l.
Proof.
  intro H; apply is_derive_Reals in H.
  apply filterlim_locally; intro eps.
  destruct (H eps (cond_pos eps)) as [d Hd].
  exists d; intros y Hy Hne _.
  change (Rabs ((g y - g x) / (y - x) - l) < eps).
  change (Rabs (y - x) < d) in Hy.
  replace (g y) with (g (x + (y - x))) by (f_equal; lra).
  apply Hd; [lra | exact Hy].
Qed.

(** The conditions, with a multiplier b; the weight is w. *)
Definition KKT (f dg : R -> R) (dg0 : Rbar) (n : nat) (w b : R) (p q : nat -> R)
    : Prop :=
  forall i, (i < n)%nat ->
    (0 < q i -> dg (q i) = w * f (p i) + b) /\
    (q i = 0 -> Rbar_le dg0 (w * f (p i) + b)).

Definition traded (f g : R -> R) (n : nat) (w : R) (q p : nat -> R) : R :=
  diversity g n q - w * quality f n q p.

Definition mode (n : nat) (p : nat -> R) (i : nat) : Prop :=
  forall j, (j < n)%nat -> p j <= p i.

Definition uniform_on_modes (n : nat) (p q : nat -> R) : Prop :=
  forall i, (i < n)%nat ->
    (mode n p i -> forall j, (j < n)%nat -> mode n p j -> q i = q j) /\
    (~ mode n p i -> q i = 0).

Section Theorem_2.

Variables (f g dg : R -> R) (dg0 : Rbar).
Hypothesis g_concave : strictly_concave g.
Hypothesis slope_of_g : forall x, 0 < x <= 1 -> slope g x (dg x).
Hypothesis slope_at_0 : slope g 0 dg0.

(** ** A concave function lies below its tangents. *)

(** What a chord gains at its inner point, before it is divided. *)
Lemma chord x y z :
  0 <= x <= 1 -> 0 <= y <= 1 -> x < z < y \/ y < z < x ->
  (z - x) / (y - x) * (g y - g x) < g z - g x.
Proof.
  intros Hx Hy Hz; set (t := (z - x) / (y - x)).
  assert (t * (y - x) = z - x) as E by (unfold t; field; lra).
  assert (0 < t < 1) as Ht by (destruct Hz; split; nra).
  assert (x <> y) as Hne by (destruct Hz; lra).
  pose proof (g_concave x y t Hx Hy Hne Ht) as H.
  replace ((1 - t) * x + t * y) with z in H by lra; lra.
Qed.

Lemma quotient_right x y z :
  0 <= x -> x < z -> z < y -> y <= 1 ->
  (g y - g x) / (y - x) < (g z - g x) / (z - x).
Proof.
  intros Hx Hz Hzy Hy.
  pose proof (chord x y z) as H.
  assert ((z - x) / (y - x) * (g y - g x) < g z - g x) by (apply H; lra).
  apply Rmult_lt_reg_l with (z - x); [lra|].
  replace ((z - x) * ((g z - g x) / (z - x))) with (g z - g x) by (field; lra).
  replace ((z - x) * ((g y - g x) / (y - x)))
    with ((z - x) / (y - x) * (g y - g x)) by (field; lra).
  assumption.
Qed.

Lemma quotient_left x y z :
  0 <= y -> y < z -> z < x -> x <= 1 ->
  (g z - g x) / (z - x) < (g y - g x) / (y - x).
Proof.
  intros Hy Hz Hzx Hx.
  pose proof (chord x y z) as H.
  assert ((z - x) / (y - x) * (g y - g x) < g z - g x) by (apply H; lra).
  apply Rmult_lt_reg_l with (x - z); [lra|].
  replace ((x - z) * ((g z - g x) / (z - x))) with (- (g z - g x)) by (field; lra).
  replace ((x - z) * ((g y - g x) / (y - x)))
    with (- ((z - x) / (y - x) * (g y - g x))) by (field; lra).
  lra.
Qed.

Lemma right_within x :
  0 <= x < 1 ->
  filter_le (at_right x) (within (fun y => 0 <= y <= 1) (locally' x)).
Proof.
  intros Hx A [d H].
  assert (0 < Rmin d (1 - x)) as Hd by (apply Rmin_pos; [apply cond_pos | lra]).
  exists (mkposreal _ Hd); intros y Hy Hxy; simpl in Hy.
  pose proof (Rmin_l d (1 - x)); pose proof (Rmin_r d (1 - x)).
  change (Rabs (y - x) < Rmin d (1 - x)) in Hy; apply Rabs_def2 in Hy.
  apply H; [change (Rabs (y - x) < d); apply Rabs_def1 | |]; lra.
Qed.

Lemma left_within x :
  0 < x <= 1 ->
  filter_le (at_left x) (within (fun y => 0 <= y <= 1) (locally' x)).
Proof.
  intros Hx A [d H].
  assert (0 < Rmin d x) as Hd by (apply Rmin_pos; [apply cond_pos | lra]).
  exists (mkposreal _ Hd); intros y Hy Hxy; simpl in Hy.
  pose proof (Rmin_l d x); pose proof (Rmin_r d x).
  change (Rabs (y - x) < Rmin d x) in Hy; apply Rabs_def2 in Hy.
  apply H; [change (Rabs (y - x) < d); apply Rabs_def1 | |]; lra.
Qed.

(** The slope at x is at least that of a chord to the right. *)
Lemma slope_right x y l :
  0 <= x -> x < y -> y <= 1 -> slope g x l ->
  Rbar_le ((g y - g x) / (y - x)) l.
Proof.
  intros Hx Hxy Hy Hl.
  apply (filterlim_le (F := at_right x)
    (fun _ => (g y - g x) / (y - x)) (fun z => (g z - g x) / (z - x))).
  - assert (0 < y - x) as Hd by lra.
    exists (mkposreal _ Hd); intros z Hz Hxz; simpl in Hz.
    change (Rabs (z - x) < y - x) in Hz; apply Rabs_def2 in Hz.
    left; apply quotient_right; lra.
  - apply filterlim_const.
  - eapply filterlim_filter_le_1; [apply right_within; lra | exact Hl].
Qed.

Lemma slope_left x y l :
  0 <= y -> y < x -> x <= 1 -> slope g x l ->
  Rbar_le l ((g y - g x) / (y - x)).
Proof.
  intros Hy Hxy Hx Hl.
  apply (filterlim_le (F := at_left x)
    (fun z => (g z - g x) / (z - x)) (fun _ => (g y - g x) / (y - x))).
  - assert (0 < x - y) as Hd by lra.
    exists (mkposreal _ Hd); intros z Hz Hxz; simpl in Hz.
    change (Rabs (z - x) < x - y) in Hz; apply Rabs_def2 in Hz.
    left; apply quotient_left; lra.
  - eapply filterlim_filter_le_1; [apply left_within; lra | exact Hl].
  - apply filterlim_const.
Qed.

(** At 0 a line that is steeper than the slope will do. *)
Lemma below_line x y l (k : R) :
  0 <= x <= 1 -> 0 <= y <= 1 -> y <> x -> slope g x l ->
  l = Finite k \/ x = 0 /\ Rbar_le l k -> g y < g x + k * (y - x).
Proof.
  intros Hx Hy Hne Hl Hk.
  set (m := (x + y) / 2).
  destruct (Rlt_le_dec x y) as [H|H].
  - assert (Rbar_le ((g m - g x) / (m - x)) k) as Hm.
    { apply Rbar_le_trans with l.
      - apply slope_right; unfold m; lra || exact Hl.
      - destruct Hk as [->|[_ Hk]]; [apply Rle_refl | exact Hk]. }
    simpl in Hm.
    assert ((g y - g x) / (y - x) < (g m - g x) / (m - x))
      by (apply quotient_right; unfold m; lra).
    assert ((g y - g x) / (y - x) * (y - x) < k * (y - x))
      by (apply Rmult_lt_compat_r; lra).
    replace ((g y - g x) / (y - x) * (y - x)) with (g y - g x) in * by (field; lra).
    lra.
  - destruct Hk as [->|[E _]]; [|lra].
    assert (Rbar_le k ((g m - g x) / (m - x))) as Hm
      by (apply slope_left; unfold m; lra || exact Hl).
    simpl in Hm.
    assert ((g m - g x) / (m - x) < (g y - g x) / (y - x))
      by (apply quotient_left; unfold m; lra).
    assert (k * (x - y) < (g y - g x) / (y - x) * (x - y))
      by (apply Rmult_lt_compat_r; lra).
    replace ((g y - g x) / (y - x) * (x - y)) with (- (g y - g x)) in * by (field; lra).
    lra.
Qed.

Lemma probability n q i : distribution n q -> (i < n)%nat -> 0 <= q i <= 1.
Proof.
  intros Hq Hi; split; [apply Hq; exact Hi|].
  apply (probability_at_most_1 n); assumption.
Qed.

(** ** The maximiser. *)

Theorem theorem_2_maximiser n w b p q r :
  distribution n q -> KKT f dg dg0 n w b p q -> distribution n r ->
  (exists k, (k < n)%nat /\ r k <> q k) -> traded f g n w r p < traded f g n w q p.
Proof.
  intros Hq conditions Hr [k [Hk Hne]].
  set (line := fun i => g (q i) + (w * f (p i) + b) * (r i - q i)).
  assert (forall i, (i < n)%nat -> r i <> q i -> g (r i) < line i) as strict.
  { intros i Hi Hri; destruct (conditions i Hi) as [inside outside].
    pose proof (probability n q i Hq Hi); pose proof (probability n r i Hr Hi).
    unfold line; destruct (Req_dec (q i) 0) as [E|E].
    - apply (below_line _ _ dg0); auto.
      rewrite E; exact slope_at_0.
    - assert (0 < q i) by lra.
      apply (below_line _ _ (dg (q i))); auto.
      + apply slope_of_g; lra.
      + left; f_equal; auto. }
  assert (Sum n (fun i => g (r i)) < Sum n line) as H.
  { apply Sum_lt with (k := k); auto.
    intros i Hi; destruct (Req_dec (r i) (q i)) as [E|E].
    - unfold line; rewrite E; lra.
    - left; auto. }
  assert (Sum n line = diversity g n q + w * (quality f n r p - quality f n q p)
    + b * (Sum n r - Sum n q)) as E.
  { unfold line, diversity, quality; clear.
    induction n as [|n IH]; simpl; [lra | rewrite IH; lra]. }
  destruct Hq as [_ Hq1], Hr as [_ Hr1]; rewrite Hq1, Hr1 in E.
  unfold traded, diversity in *; lra.
Qed.

Theorem theorem_2_if n w b p q :
  w <= 0 -> distribution n q -> KKT f dg dg0 n w b p q -> Pareto_optimal f g n q p.
Proof.
  intros Hw Hq conditions; split; [exact Hq|].
  intros r Hr HU HV.
  assert (forall i, (i < n)%nat -> r i = q i) as E.
  { intros i Hi; destruct (Req_dec (r i) (q i)) as [E|E]; [exact E|exfalso].
    assert (traded f g n w r p < traded f g n w q p) as H
      by (apply (theorem_2_maximiser n w b); auto; exists i; auto).
    unfold traded in H; nra. }
  split; apply Sum_ext; intros i Hi; rewrite (E i Hi); reflexivity.
Qed.

(** ** The two ends. *)

Theorem theorem_2_uniform n p :
  (0 < n)%nat -> Pareto_optimal f g n (fun _ => / INR n) p.
Proof.
  intro Hn; assert (1 <= INR n) as H1 by (change 1 with (INR 1); apply le_INR; lia).
  assert (0 < / INR n <= 1) as Hc.
  { split; [apply Rinv_0_lt_compat; lra|].
    rewrite <- Rinv_1; apply Rinv_le_contravar; lra. }
  apply (theorem_2_if n 0 (dg (/ INR n))); [lra | split | ].
  - intros i _; lra.
  - assert (forall m c, Sum m (fun _ => c) = INR m * c) as constant.
    { intros m c; induction m as [|m IH]; [simpl; lra|].
      rewrite S_INR; simpl; rewrite IH; lra. }
    rewrite constant; field; lra.
  - intros i _; split; intro H; lra.
Qed.

Theorem theorem_2_modes n p q :
  (forall i j, (i < n)%nat -> (j < n)%nat -> p i < p j -> f (p i) < f (p j)) ->
  distribution n q -> uniform_on_modes n p q -> Pareto_optimal f g n q p.
Proof.
  intros increasing Hq modes; split; [exact Hq|].
  intros r Hr HU HV.
  (* A text with mass is a mode; f is greatest there. *)
  assert (exists k, (k < n)%nat /\ mode n p k) as [k [Hk top]].
  { destruct Hq as [_ Hq1].
    assert (0 < n)%nat as Hn by (destruct n; [simpl in Hq1; lra | lia]).
    clear - Hn; induction n as [|m IH]; [lia|].
    destruct m as [|m].
    - exists O; split; [lia|]; intros j Hj; replace j with O by lia; lra.
    - destruct IH as [k [Hk top]]; [lia|].
      destruct (Rle_lt_dec (p (S m)) (p k)) as [H|H].
      + exists k; split; [lia|]; intros j Hj.
        destruct (Nat.eq_dec j (S m)) as [->|]; [exact H | apply top; lia].
      + exists (S m); split; [lia|]; intros j Hj.
        destruct (Nat.eq_dec j (S m)) as [->|]; [lra|].
        assert (p j <= p k) by (apply top; lia); lra. }
  assert (forall i, (i < n)%nat -> p i = p k -> q i = q k) as level.
  { intros i Hi E; apply (modes i Hi); auto.
    intros j Hj; rewrite E; auto. }
  assert (forall i, (i < n)%nat -> p i < p k -> q i = 0) as nothing.
  { intros i Hi H; apply (modes i Hi); intro Hm; pose proof (Hm k Hk); lra. }
  assert (forall i, (i < n)%nat -> p i = p k \/ p i < p k) as cases.
  { intros i Hi; destruct (top i Hi); auto. }
  assert (0 < q k) as positive.
  { destruct (Rle_lt_or_eq_dec 0 (q k)) as [H|H]; [apply Hq; exact Hk | exact H|].
    exfalso; destruct Hq as [_ Hq1].
    assert (Sum n q = Sum n (fun _ => 0)) as E.
    { apply Sum_ext; intros i Hi; destruct (cases i Hi) as [E|E].
      - rewrite (level i Hi E); auto.
      - auto. }
    assert (Sum n (fun _ => 0) = 0) by (clear; induction n; simpl; lra).
    lra. }
  (* So a model as good in quality has nothing elsewhere. *)
  assert (quality f n q p = f (p k)) as best.
  { transitivity (Sum n (fun i => f (p k) * q i)).
    - apply Sum_ext; intros i Hi; destruct (cases i Hi) as [E|E].
      + rewrite E; lra.
      + rewrite (nothing i Hi E); lra.
    - rewrite Sum_scale; destruct Hq as [_ ->]; lra. }
  assert (forall i, (i < n)%nat -> p i < p k -> r i = 0) as elsewhere.
  { intros i Hi H; destruct (Req_dec (r i) 0) as [E|E]; [exact E|exfalso].
    assert (quality f n r p < Sum n (fun j => f (p k) * r j)) as less.
    { apply Sum_lt with (k := i); [|exact Hi|].
      - intros j Hj; pose proof (proj1 Hr j Hj); destruct (cases j Hj) as [Ej|Ej].
        + rewrite Ej; lra.
        + pose proof (increasing j k Hj Hk Ej); nra.
      - pose proof (proj1 Hr i Hi); pose proof (increasing i k Hi Hk H); nra. }
    rewrite Sum_scale in less; destruct Hr as [_ Hr1]; rewrite Hr1 in less; lra. }
  assert (forall i, (i < n)%nat -> r i = q i) as same.
  { intros i Hi; destruct (Req_dec (r i) (q i)) as [E|E]; [exact E|exfalso].
    set (line := fun j => g (q j) + dg (q k) * (r j - q j)).
    assert (forall j, (j < n)%nat -> r j <> q j -> g (r j) < line j) as strict.
    { intros j Hj Hne; destruct (cases j Hj) as [Ej|Ej].
      - pose proof (probability n q k Hq Hk).
        unfold line; rewrite (level j Hj Ej) in Hne |- *.
        apply (below_line _ _ (dg (q k))); auto.
        + apply (probability n); assumption.
        + apply slope_of_g; lra.
      - rewrite (nothing j Hj Ej), (elsewhere j Hj Ej) in Hne; lra. }
    assert (Sum n (fun j => g (r j)) < Sum n line) as H.
    { apply Sum_lt with (k := i); auto.
      intros j Hj; destruct (Req_dec (r j) (q j)) as [Ej|Ej].
      - unfold line; rewrite Ej; lra.
      - left; auto. }
    assert (Sum n line = diversity g n q + dg (q k) * (Sum n r - Sum n q)) as Es.
    { unfold line, diversity; generalize (dg (q k)); clear; intro c.
      induction n as [|n IH]; simpl; [lra | rewrite IH; lra]. }
    destruct Hq as [_ Hq1], Hr as [_ Hr1]; rewrite Hq1, Hr1 in Es.
    unfold diversity in *; lra. }
  split; apply Sum_ext; intros i Hi; rewrite (same i Hi); reflexivity.
Qed.

End Theorem_2.

(** ** Log-likelihood and entropy: powers of P. Here the slope at 0 is infinite. *)

Lemma entropy_term_concave : strictly_concave entropy_term.
Proof.
  intros x y t Hx Hy Hne Ht; set (z := (1 - t) * x + t * y).
  assert (0 < z <= 1) as Hz by (unfold z; split; nra).
  assert (forall v, 0 <= v <= 1 -> v <> z ->
    entropy_term v < entropy_term z + (-1 * ln z + -1) * (v - z)) as below.
  { intros v Hv Hvz.
    apply (below_tangent ln entropy_term (-1) (-1)); try lra.
    - intros a b Ha Hab _; apply ln_increasing; lra.
    - intros a Ha _; unfold entropy_term; auto_derive; [lra | field; lra].
    - exact entropy_term_continuous_at_0. }
  assert (x <> z /\ y <> z) as [Hxz Hyz] by (unfold z; split; nra).
  pose proof (below x Hx Hxz); pose proof (below y Hy Hyz).
  assert (x - z = t * (x - y) /\ y - z = (1 - t) * (y - x)) as [Ex Ey]
    by (unfold z; split; ring).
  rewrite Ex in *; rewrite Ey in *.
  assert ((1 - t) * entropy_term x <
    (1 - t) * (entropy_term z + (-1 * ln z + -1) * (t * (x - y))))
    by (apply Rmult_lt_compat_l; lra).
  assert (t * entropy_term y <
    t * (entropy_term z + (-1 * ln z + -1) * ((1 - t) * (y - x))))
    by (apply Rmult_lt_compat_l; lra).
  lra.
Qed.

Lemma entropy_term_slope_at_0 : slope entropy_term 0 p_infty.
Proof.
  intros A [M HA]; exists (mkposreal _ (exp_pos (- M))).
  intros y Hy Hne Hin; apply HA.
  change (Rabs (y - 0) < exp (- M)) in Hy.
  rewrite Rminus_0_r, Rabs_pos_eq in Hy by lra.
  unfold entropy_term; rewrite Rmult_0_l.
  replace ((- (y * ln y) - - 0) / (y - 0)) with (- ln y) by (field; lra).
  assert (ln y < - M); [|lra].
  rewrite <- (ln_exp (- M)); apply ln_increasing; lra.
Qed.

(** Z is what makes the sum 1. *)
Theorem powers_are_Pareto_optimal n p beta Z :
  interior n p -> 0 <= beta -> 0 < Z ->
  distribution n (fun i => exp (beta * ln (p i)) / Z) ->
  Pareto_optimal ln entropy_term n (fun i => exp (beta * ln (p i)) / Z) p.
Proof.
  intros Hp Hbeta HZ Hq.
  apply (theorem_2_if ln entropy_term (fun x => - ln x - 1) p_infty
    entropy_term_concave) with (w := - beta) (b := ln Z - 1); auto; try lra.
  - intros x Hx; apply derivative_is_slope; unfold entropy_term; auto_derive;
      [lra | field; lra].
  - exact entropy_term_slope_at_0.
  - intros i Hi; pose proof (exp_pos (beta * ln (p i))) as He; split; intro H.
    + unfold Rdiv; rewrite ln_mult, ln_exp, ln_Rinv; try lra.
      apply Rinv_0_lt_compat; exact HZ.
    + assert (0 < exp (beta * ln (p i)) / Z) by (apply Rdiv_lt_0_compat; lra); lra.
Qed.
