(** The law of two errors: of texts drawn from P, the errors of quality and diversity
    have the correlation rho in the limit, and rho is -1 where no model beats P.

    Notebook 26, theorem of two errors, claims N26.2 to N26.4. *)

From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
Require Import QD.Sums QD.Theorem3.
Open Scope R_scope.

(** Over n texts of probabilities p. *)
Definition mean (n : nat) (p a : nat -> R) : R := Sum n (fun i => p i * a i).

Definition centred (n : nat) (p a : nat -> R) (i : nat) : R := a i - mean n p a.

Definition deviation (n : nat) (p a : nat -> R) : R :=
  sqrt (mean n p (fun i => centred n p a i * centred n p a i)).

Definition correlation (n : nat) (p a b : nat -> R) : R :=
  mean n p (fun i => centred n p a i * centred n p b i) /
  (deviation n p a * deviation n p b).

(** A metric of models. At P it has the derivatives w, along each line of sum 1. *)
Definition derivatives (n : nat) (p : nat -> R) (W : (nat -> R) -> R) (w : nat -> R)
    : Prop :=
  forall d, Sum n d = 0 ->
    is_derive (fun e => W (fun i => p i + e * d i)) 0 (Sum n (fun i => d i * w i)).

(** With one set of numbers for all models. *)
Definition linear (n : nat) (W : (nat -> R) -> R) : Prop :=
  exists s, forall q, W q = Sum n (fun i => q i * s i).

Definition concave (n : nat) (W : (nat -> R) -> R) : Prop :=
  forall p q t, distribution n p -> distribution n q -> 0 <= t <= 1 ->
    (1 - t) * W p + t * W q <= W (fun i => p i + t * (q i - p i)).

Definition better_in_both (n : nat) (U V : (nat -> R) -> R) (q p : nat -> R) : Prop :=
  distribution n q /\ U p < U q /\ V p < V q.

(** The model Q = P (1 + e h). *)
Definition along (p h : nat -> R) (e : R) (i : nat) : R := p i * (1 + e * h i).

Definition direction (n : nat) (p h : nat -> R) : Prop :=
  mean n p h = 0 /\ mean n p (fun i => h i * h i) = 1.

(** The sum of both influences, made a direction. *)
Definition best (n : nat) (p u v : nat -> R) (i : nat) : R :=
  (centred n p u i / deviation n p u + centred n p v i / deviation n p v) /
  sqrt (2 * (1 + correlation n p u v)).

Section Two_errors.

Variables (n : nat) (p u v : nat -> R) (U V : (nat -> R) -> R).
Hypothesis P_positive : interior n p.
Hypothesis U_differentiable : derivatives n p U u.
Hypothesis V_differentiable : derivatives n p V v.
Hypothesis u_varies : 0 < deviation n p u.
Hypothesis v_varies : 0 < deviation n p v.

Let E (a : nat -> R) : R := mean n p a.
Let a (i : nat) : R := centred n p u i / deviation n p u.
Let b (i : nat) : R := centred n p v i / deviation n p v.
Let rho : R := correlation n p u v.

(** ** Means. *)

Lemma E_ext x y : (forall i, (i < n)%nat -> x i = y i) -> E x = E y.
Proof. intro H; apply Sum_ext; intros i Hi; rewrite H by exact Hi; reflexivity. Qed.

Lemma E_plus x y : E (fun i => x i + y i) = E x + E y.
Proof.
  unfold E, mean; rewrite <- Sum_plus; apply Sum_ext; intros i _; lra.
Qed.

Lemma E_scale c x : E (fun i => c * x i) = c * E x.
Proof.
  unfold E, mean; rewrite <- Sum_scale; apply Sum_ext; intros i _; lra.
Qed.

Lemma E_const c : E (fun _ => c) = c.
Proof.
  transitivity (E (fun _ => c * 1)); [apply E_ext; intros; lra|].
  rewrite (E_scale c (fun _ => 1)); unfold E, mean.
  rewrite (Sum_ext n _ p) by (intros; lra).
  destruct P_positive as [_ ->]; lra.
Qed.

Lemma E_nonnegative x : (forall i, (i < n)%nat -> 0 <= x i) -> 0 <= E x.
Proof.
  intro H; replace 0 with (E (fun _ => 0)) by apply E_const.
  apply Sum_le; intros i Hi; pose proof (H i Hi).
  pose proof (proj1 P_positive i Hi); nra.
Qed.

Lemma E_zero x :
  (forall i, (i < n)%nat -> 0 <= x i) -> E x = 0 ->
  forall i, (i < n)%nat -> x i = 0.
Proof.
  intros H H0 i Hi; destruct (H i Hi) as [Hx|]; [exfalso | congruence].
  pose proof (proj1 P_positive i Hi).
  assert (E (fun _ => 0) < E x); [|rewrite E_const in *; lra].
  apply Sum_lt with (k := i); auto; [|nra].
  intros j Hj; pose proof (H j Hj); pose proof (proj1 P_positive j Hj); nra.
Qed.

Lemma E_centred x : E (centred n p x) = 0.
Proof.
  transitivity (E (fun i => x i + - E x)); [apply E_ext; reflexivity|].
  rewrite E_plus, E_const; lra.
Qed.

(** Against what has mean 0, the constant that is taken off does not count. *)
Lemma E_against x h : E h = 0 -> E (fun i => centred n p x i * h i) =
  Sum n (fun i => p i * h i * x i).
Proof.
  intro Hh; transitivity (E (fun i => x i * h i + - E x * h i)).
  - apply E_ext; intros; unfold centred, E; lra.
  - rewrite E_plus, (E_scale (- E x) h), Hh; unfold E, mean.
    rewrite Rmult_0_r, Rplus_0_r; apply Sum_ext; intros; ring.
Qed.

Lemma unit_of x :
  0 < deviation n p x ->
  E (fun i => centred n p x i / deviation n p x * (centred n p x i / deviation n p x))
  = 1.
Proof.
  intro H; set (s := deviation n p x) in *.
  assert (s * s = E (fun i => centred n p x i * centred n p x i)) as Hs.
  { apply sqrt_sqrt, E_nonnegative; intros; nra. }
  transitivity (E (fun i => / (s * s) * (centred n p x i * centred n p x i))).
  - apply E_ext; intros; field; lra.
  - rewrite E_scale, <- Hs; field; lra.
Qed.

Lemma mean_of x :
  0 < deviation n p x -> E (fun i => centred n p x i / deviation n p x) = 0.
Proof.
  intro H; transitivity (E (fun i => / deviation n p x * centred n p x i)).
  - apply E_ext; intros; field; lra.
  - rewrite E_scale, E_centred; lra.
Qed.

Lemma E_a : E a = 0.
Proof. apply mean_of; assumption. Qed.

Lemma E_b : E b = 0.
Proof. apply mean_of; assumption. Qed.

Lemma E_ab : E (fun i => a i * b i) = rho.
Proof.
  transitivity (E (fun i => / (deviation n p u * deviation n p v) *
    (centred n p u i * centred n p v i))).
  - apply E_ext; intros; unfold a, b; field; lra.
  - rewrite E_scale; unfold rho, correlation, E; field; lra.
Qed.

Lemma E_sum_squared : E (fun i => (a i + b i) * (a i + b i)) = 2 * (1 + rho).
Proof.
  transitivity (E (fun i => a i * a i + (b i * b i + 2 * (a i * b i)))).
  - apply E_ext; intros; lra.
  - rewrite !E_plus, (E_scale 2), E_ab; unfold a, b.
    rewrite !unit_of by assumption; lra.
Qed.

Lemma E_times_sum h : E (fun i => (a i + b i) * h i) =
  E (fun i => a i * h i) + E (fun i => b i * h i).
Proof. rewrite <- E_plus; apply E_ext; intros; lra. Qed.

Lemma rho_at_least : -1 <= rho.
Proof.
  assert (0 <= 2 * (1 + rho)); [|lra].
  rewrite <- E_sum_squared; apply E_nonnegative; intros; apply Rle_0_sqr.
Qed.

(** ** What a direction gains, in standard deviations. *)

Lemma gains W w h :
  derivatives n p W w -> 0 < deviation n p w -> E h = 0 ->
  is_derive (fun e => W (along p h e)) 0
    (deviation n p w * E (fun i => centred n p w i / deviation n p w * h i)).
Proof.
  intros D varies Hh.
  assert (deviation n p w * E (fun i => centred n p w i / deviation n p w * h i) =
    Sum n (fun i => p i * h i * w i)) as ->.
  { rewrite <- E_scale, <- E_against by exact Hh.
    apply E_ext; intros; field; lra. }
  apply (is_derive_ext (fun e => W (fun i => p i + e * (p i * h i)))).
  - intro e; f_equal; apply functional_extensionality; intro i; unfold along; ring.
  - apply (D (fun i => p i * h i)); exact Hh.
Qed.

(** No direction gains more in the worse of both. *)
Theorem two_errors_bound h :
  direction n p h -> exists x y,
    is_derive (fun e => U (along p h e)) 0 (deviation n p u * x) /\
    is_derive (fun e => V (along p h e)) 0 (deviation n p v * y) /\
    Rmin x y <= sqrt ((1 + rho) / 2).
Proof.
  intros [Hh H1].
  exists (E (fun i => a i * h i)), (E (fun i => b i * h i)).
  split; [apply gains; assumption|].
  split; [apply gains; assumption|].
  set (x := E (fun i => a i * h i)); set (y := E (fun i => b i * h i)).
  (* The mean square of a + b - (x + y) h is not negative. *)
  assert (0 <= 2 * (1 + rho) - (x + y) * (x + y)) as H.
  { assert (2 * (1 + rho) - (x + y) * (x + y) = E (fun i =>
      (a i + b i - (x + y) * h i) * (a i + b i - (x + y) * h i))) as ->.
    { transitivity (E (fun i => (a i + b i) * (a i + b i) +
        (-2 * (x + y) * ((a i + b i) * h i) + (x + y) * (x + y) * (h i * h i)))).
      - rewrite !E_plus, (E_scale (-2 * (x + y))), (E_scale ((x + y) * (x + y))).
        rewrite E_sum_squared, E_times_sum; fold x y.
        change (E (fun i => h i * h i)) with (mean n p (fun i => h i * h i)).
        rewrite H1; ring.
      - apply E_ext; intros; ring. }
    apply E_nonnegative; intros; apply Rle_0_sqr. }
  apply Rle_trans with ((x + y) / 2).
  - pose proof (Rmin_l x y); pose proof (Rmin_r x y); lra.
  - apply Rle_trans with (sqrt ((x + y) / 2 * ((x + y) / 2))).
    + change ((x + y) / 2 * ((x + y) / 2)) with (Rsqr ((x + y) / 2)).
      rewrite sqrt_Rsqr_abs; apply Rle_abs.
    + apply sqrt_le_1_alt; lra.
Qed.

(** The sum of both influences gains as much, in both. *)
Theorem two_errors_best :
  -1 < rho -> direction n p (best n p u v) /\
    is_derive (fun e => U (along p (best n p u v) e)) 0
      (deviation n p u * sqrt ((1 + rho) / 2)) /\
    is_derive (fun e => V (along p (best n p u v) e)) 0
      (deviation n p v * sqrt ((1 + rho) / 2)).
Proof.
  intro Hrho; set (N := sqrt (2 * (1 + rho))).
  assert (N * N = 2 * (1 + rho)) as HN by (apply sqrt_sqrt; lra).
  assert (0 < N) as Npos by (apply sqrt_lt_R0; lra).
  assert (sqrt ((1 + rho) / 2) = (1 + rho) / N) as half.
  { replace ((1 + rho) / 2) with (Rsqr ((1 + rho) / N)).
    - rewrite sqrt_Rsqr_abs; apply Rabs_pos_eq; left; apply Rdiv_lt_0_compat; lra.
    - unfold Rsqr; replace ((1 + rho) / N * ((1 + rho) / N))
        with ((1 + rho) * (1 + rho) / (N * N)) by (field; lra).
      rewrite HN; field; lra. }
  assert (forall x, E (fun i => x i * best n p u v i) =
    / N * (E (fun i => x i * a i) + E (fun i => x i * b i))) as along_best.
  { intro x; rewrite <- E_plus, <- E_scale; apply E_ext; intros.
    unfold best; fold rho N; unfold a, b; field; lra. }
  assert (E (best n p u v) = 0) as E_best.
  { transitivity (E (fun i => 1 * best n p u v i)); [apply E_ext; intros; lra|].
    rewrite (along_best (fun _ => 1)), (E_scale 1 a), (E_scale 1 b), E_a, E_b; lra. }
  assert (E (fun i => a i * best n p u v i) = (1 + rho) / N) as Ea.
  { rewrite along_best, E_ab; unfold a; rewrite unit_of by assumption; field; lra. }
  assert (E (fun i => b i * best n p u v i) = (1 + rho) / N) as Eb.
  { rewrite along_best; unfold b at 2 3; rewrite unit_of by assumption.
    rewrite (E_ext (fun i => b i * a i) (fun i => a i * b i)) by (intros; ring).
    rewrite E_ab; field; lra. }
  split; [split|].
  - exact E_best.
  - fold (E (fun i => best n p u v i * best n p u v i)).
    rewrite along_best.
    rewrite (E_ext _ (fun i => a i * best n p u v i)) by (intros; ring).
    rewrite (E_ext (fun i => best n p u v i * b i) (fun i => b i * best n p u v i))
      by (intros; ring).
    rewrite Ea, Eb.
    replace (/ N * ((1 + rho) / N + (1 + rho) / N)) with (2 * (1 + rho) / (N * N))
      by (field; lra).
    rewrite <- HN; field; lra.
  - rewrite half; split; [rewrite <- Ea | rewrite <- Eb]; apply gains; assumption.
Qed.

(** ** Where nothing beats P. *)

(** What rises at 0 is above its value there soon after. *)
Lemma rises (f : R -> R) l :
  is_derive f 0 l -> 0 < l ->
  exists d, 0 < d /\ forall e, 0 < e -> e < d -> f 0 < f e.
Proof.
  intros H Hl; apply is_derive_Reals in H.
  destruct (H l Hl) as [d Hd]; exists d; split; [apply cond_pos|].
  intros e He Hed.
  assert (Rabs ((f (0 + e) - f 0) / e - l) < l) as B.
  { apply Hd; [lra | rewrite Rabs_pos_eq; lra]. }
  rewrite Rplus_0_l in B; apply Rabs_def2 in B.
  assert (0 < (f e - f 0) / e * e) by (apply Rmult_lt_0_compat; lra).
  replace ((f e - f 0) / e * e) with (f e - f 0) in * by (field; lra); lra.
Qed.

Lemma bounded (h : nat -> R) :
  exists B, 0 < B /\ forall i, (i < n)%nat -> Rabs (h i) <= B.
Proof.
  clear; induction n as [|m [B [HB H]]].
  - exists 1; split; [lra | intros; lia].
  - exists (B + Rabs (h m)); pose proof (Rabs_pos (h m)); split; [lra|].
    intros i Hi; destruct (Nat.eq_dec i m) as [->|]; [lra|].
    assert (Rabs (h i) <= B) by (apply H; lia); lra.
Qed.

Lemma along_0 h : along p h 0 = p.
Proof. apply functional_extensionality; intro i; unfold along; ring. Qed.

Theorem two_errors_only_if :
  (forall q, ~ better_in_both n U V q p) -> rho = -1.
Proof.
  intro unbeaten; destruct (Req_dec rho (-1)) as [H|H]; [exact H|exfalso].
  pose proof rho_at_least; assert (-1 < rho) as Hrho by lra.
  destruct (two_errors_best Hrho) as [[Hh _] [DU DV]].
  set (h := best n p u v) in *.
  assert (0 < sqrt ((1 + rho) / 2)) by (apply sqrt_lt_R0; lra).
  destruct (rises _ _ DU) as [d1 [Hd1 U1]]; [apply Rmult_lt_0_compat; lra|].
  destruct (rises _ _ DV) as [d2 [Hd2 V1]]; [apply Rmult_lt_0_compat; lra|].
  destruct (bounded h) as [B [HB bound]].
  set (e := Rmin (Rmin d1 d2) (/ B) / 2).
  assert (0 < / B) by (apply Rinv_0_lt_compat; exact HB).
  assert (0 < Rmin (Rmin d1 d2) (/ B)) by (repeat apply Rmin_pos; assumption).
  pose proof (Rmin_l (Rmin d1 d2) (/ B)); pose proof (Rmin_r (Rmin d1 d2) (/ B)).
  pose proof (Rmin_l d1 d2); pose proof (Rmin_r d1 d2).
  apply (unbeaten (along p h e)); split; [split|].
  - intros i Hi; pose proof (proj1 P_positive i Hi); pose proof (bound i Hi).
    pose proof (Rle_abs (- h i)); rewrite Rabs_Ropp in *.
    assert (e * B < 1).
    { apply Rmult_lt_reg_r with (/ B); [assumption|].
      replace (e * B * / B) with e by (field; lra); unfold e; lra. }
    assert (0 < e) by (unfold e; lra).
    assert (- 1 <= e * h i) by nra.
    unfold along; nra.
  - assert (Sum n (along p h e) = Sum n p + e * E h) as ->.
    { unfold E, mean; rewrite <- Sum_scale, <- Sum_plus.
      apply Sum_ext; intros; unfold along; ring. }
    change (E h) with (mean n p h); rewrite Hh; destruct P_positive as [_ ->]; lra.
  - pose proof (U1 e) as HU; pose proof (V1 e) as HV; rewrite along_0 in HU, HV.
    split; [apply HU | apply HV]; unfold e; lra.
Qed.

(** For a concave diversity what is gained in one metric is lost in the other. *)
Lemma opposite : rho = -1 -> forall i, (i < n)%nat -> a i + b i = 0.
Proof.
  intros H i Hi; pose proof E_sum_squared as S; rewrite H in S.
  assert ((a i + b i) * (a i + b i) = 0); [|nra].
  apply (E_zero (fun i => (a i + b i) * (a i + b i))); auto; [intros; apply Rle_0_sqr | lra].
Qed.

Lemma concave_below_slope q :
  concave n V -> distribution n q ->
  V q - V p <= Sum n (fun i => (q i - p i) * v i).
Proof.
  intros Vc Hq.
  assert (distribution n p) as Hp
    by (destruct P_positive as [P0 P1]; split; [intros; left; auto | exact P1]).
  set (l := Sum n _).
  set (c := fun e => V (fun i => p i + e * (q i - p i)) - e * (V q - V p)).
  assert (c 0 = V p) as c0.
  { unfold c; rewrite Rmult_0_l, Rminus_0_r; f_equal.
    apply functional_extensionality; intro; ring. }
  destruct (Rle_lt_dec (V q - V p) l) as [H|H]; [exact H|exfalso].
  assert (is_derive (fun e => - c e) 0 (V q - V p - l)) as D.
  { replace (V q - V p - l) with (opp (minus l (V q - V p)))
      by (unfold opp, minus, plus, opp; simpl; lra).
    apply (is_derive_opp c 0), (is_derive_minus
      (fun e => V (fun i => p i + e * (q i - p i))) (fun e => e * (V q - V p))).
    - apply (V_differentiable (fun i => q i - p i)).
      replace 0 with (Sum n q + -1 * Sum n p)
        by (destruct Hq as [_ ->], Hp as [_ ->]; lra).
      rewrite <- Sum_scale, <- Sum_plus; apply Sum_ext; intros; lra.
    - auto_derive; [trivial | lra]. }
  destruct (rises _ _ D) as [d [Hd Hr]]; [lra|].
  assert (0 < Rmin d 1) by (apply Rmin_pos; lra).
  pose proof (Rmin_l d 1); pose proof (Rmin_r d 1).
  pose proof (Hr (Rmin d 1 / 2)) as B; rewrite c0 in B.
  pose proof (Vc p q (Rmin d 1 / 2) Hp Hq) as C.
  unfold c in B; lra.
Qed.

Lemma linear_by_slope q :
  linear n U -> distribution n q -> U q - U p = Sum n (fun i => (q i - p i) * u i).
Proof.
  intros [s Us] Hq; set (d := fun i => q i - p i).
  assert (Sum n d = 0) as Hd.
  { transitivity (Sum n q + -1 * Sum n p).
    - rewrite <- Sum_scale, <- Sum_plus; apply Sum_ext; intros; unfold d; lra.
    - destruct Hq as [_ ->], P_positive as [_ ->]; lra. }
  assert (U q - U p = Sum n (fun i => d i * s i)) as ->.
  { rewrite !Us; unfold d; clear; induction n as [|m IH]; simpl; lra. }
  transitivity (Derive (fun e => U (fun i => p i + e * d i)) 0).
  - symmetry; apply is_derive_unique.
    apply (is_derive_ext (fun e => U p + e * Sum n (fun i => d i * s i))).
    + intro e; rewrite !Us, <- Sum_scale, <- Sum_plus; apply Sum_ext; intros; ring.
    + auto_derive; [trivial | lra].
  - apply is_derive_unique; exact (U_differentiable d Hd).
Qed.

Lemma two_errors_trade q :
  linear n U -> concave n V -> rho = -1 -> distribution n q ->
  V q - V p <=
    - (deviation n p v / deviation n p u) * (U q - U p).
Proof.
  intros Ul Vc H Hq; rewrite (linear_by_slope q Ul Hq).
  pose proof (concave_below_slope q Vc Hq) as B.
  set (s := deviation n p v / deviation n p u).
  assert (forall i, (i < n)%nat ->
    v i = - s * u i + (s * mean n p u + mean n p v)) as line.
  { intros i Hi; pose proof (opposite H i Hi) as O; unfold a, b, centred in O.
    apply (Rmult_eq_compat_l (deviation n p v)) in O.
    replace (deviation n p v * ((u i - mean n p u) / deviation n p u +
      (v i - mean n p v) / deviation n p v))
      with (s * (u i - mean n p u) + (v i - mean n p v)) in O
      by (unfold s; field; lra).
    lra. }
  set (k := s * mean n p u + mean n p v) in line.
  assert (Sum n (fun i => (q i - p i) * v i) =
    - s * Sum n (fun i => (q i - p i) * u i) + k * (Sum n q - Sum n p)) as F.
  { transitivity (Sum n (fun i => (q i - p i) * (- s * u i + k))).
    - apply Sum_ext; intros i Hi; rewrite (line i Hi); reflexivity.
    - generalize s k; clear; intros s k.
      induction n as [|m IH]; simpl; [lra | rewrite IH; lra]. }
  destruct Hq as [_ Hq1], P_positive as [_ Hp1]; rewrite Hq1, Hp1 in F; lra.
Qed.

Theorem two_errors_if :
  linear n U -> concave n V -> rho = -1 -> forall q, ~ better_in_both n U V q p.
Proof.
  intros Ul Vc H q [Hq [HU HV]].
  pose proof (two_errors_trade q Ul Vc H Hq) as B.
  assert (0 < deviation n p v / deviation n p u) by (apply Rdiv_lt_0_compat; lra).
  nra.
Qed.

End Two_errors.

(** ** Sums over texts, as an example: the errors of log-likelihood and entropy. *)

Lemma quality_linear f n p : linear n (fun q => quality f n q p).
Proof. exists (fun i => f (p i)); reflexivity. Qed.

Lemma quality_derivatives f n p :
  derivatives n p (fun q => quality f n q p) (fun i => f (p i)).
Proof.
  intros d _; apply (is_derive_ext
    (fun e => quality f n p p + e * Sum n (fun i => d i * f (p i)))).
  - intro e; unfold quality; rewrite <- Sum_scale, <- Sum_plus.
    apply Sum_ext; intros; ring.
  - auto_derive; [trivial | lra].
Qed.

Lemma diversity_derivatives g dg n p :
  (forall i, (i < n)%nat -> is_derive g (p i) (dg (p i))) ->
  derivatives n p (diversity g n) (fun i => dg (p i)).
Proof.
  intros D d _; unfold diversity; induction n as [|m IH]; simpl.
  - apply (is_derive_const 0).
  - apply (is_derive_plus (fun e => Sum m (fun i => g (p i + e * d i)))
      (fun e => g (p m + e * d m))); [apply IH; intros; apply D; lia|].
    apply (is_derive_comp g (fun e => p m + e * d m) 0 (dg (p m)) (d m)).
    + rewrite Rmult_0_l, Rplus_0_r; apply D; lia.
    + auto_derive; [trivial | ring].
Qed.

Corollary LL_SE_errors_cancel n p :
  interior n p -> 0 < deviation n p (fun i => ln (p i)) ->
  correlation n p (fun i => ln (p i)) (fun i => - ln (p i) - 1) = -1.
Proof.
  intros Hp varies; pose proof (proj1 Hp) as positive.
  assert (forall i, centred n p (fun i => - ln (p i) - 1) i =
    - centred n p (fun i => ln (p i)) i) as opposite_centred.
  { intro i; unfold centred, mean.
    replace (Sum n (fun i => p i * (- ln (p i) - 1)))
      with (-1 * Sum n (fun i => p i * ln (p i)) + -1 * Sum n p).
    - destruct Hp as [_ ->]; ring.
    - rewrite <- !Sum_scale, <- Sum_plus; apply Sum_ext; intros; ring. }
  apply (two_errors_only_if n p _ _ (fun q => quality ln n q p)
    (diversity entropy_term n)); try assumption.
  - apply quality_derivatives.
  - apply (diversity_derivatives entropy_term (fun x => - ln x - 1)).
    intros i Hi; pose proof (positive i Hi).
    unfold entropy_term; auto_derive; [lra | field; lra].
  - assert (deviation n p (fun i => - ln (p i) - 1) =
      deviation n p (fun i => ln (p i))) as ->; [|exact varies].
    unfold deviation; f_equal; apply Sum_ext; intros i _.
    rewrite opposite_centred; ring.
  - intros q [Hq [HU HV]].
    destruct (LL_SE_is_compatible n p Hp) as [_ unbeaten].
    destruct (unbeaten q Hq) as [E _]; lra.
Qed.
