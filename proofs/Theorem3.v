(** Theorem 3, "if": where g' = w0 f + b0 with w0 < 0 and f increasing, the gap
    between P and a model is a divergence, so no model beats P in both metrics.

    Li et al. 2020, Theorem 3; notebook 04, claims T3.1 to T3.4.
    In Python: qdtheory.proofs.theorem_3 and qdtheory.check_compatibility. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Require Import QD.Sums.
Open Scope R_scope.

Section Theorem_3.

Variables (f g : R -> R) (w0 b0 : R).
Hypothesis slope_negative : w0 < 0.
Hypothesis f_increasing : forall x y, 0 < x -> x < y -> y <= 1 -> f x < f y.
Hypothesis slope_of_g :
  forall x, 0 < x -> x <= 1 -> is_derive g x (w0 * f x + b0).
Hypothesis g_continuous_at_0 : filterlim g (at_right 0) (locally (g 0)).

Let tangent (p q : R) : R := g p + (w0 * f p + b0) * (q - p).

(** The slope of g falls, so that g lies below its tangents, strictly. *)
Lemma below_tangent_inside p q :
  0 < p -> p <= 1 -> 0 < q -> q <= 1 -> q <> p -> g q < tangent p q.
Proof.
  intros Hp Hp1 Hq Hq1 Hne; unfold tangent.
  destruct (MVT_gen g p q (fun x => w0 * f x + b0)) as [c [Hc E]].
  - intros x Hx; apply slope_of_g; unfold Rmin, Rmax in Hx;
      destruct (Rle_dec p q); lra.
  - intros x Hx.
    apply continuity_pt_filterlim, (ex_derive_continuous g).
    eexists; apply slope_of_g; unfold Rmin, Rmax in Hx; destruct (Rle_dec p q); lra.
  - assert (c = p \/ c <> p) as [->|Hcp] by (destruct (Req_dec c p); auto).
    + (* The mean value theorem may name an end; then a point between helps. *)
      set (m := (p + q) / 2).
      destruct (MVT_gen g p m (fun x => w0 * f x + b0)) as [c1 [Hc1 E1]].
      { intros x Hx; apply slope_of_g; unfold m, Rmin, Rmax in Hx;
          destruct (Rle_dec p ((p + q) / 2)); lra. }
      { intros x Hx; apply continuity_pt_filterlim, (ex_derive_continuous g).
        eexists; apply slope_of_g; unfold m, Rmin, Rmax in Hx;
          destruct (Rle_dec p ((p + q) / 2)); lra. }
      destruct (MVT_gen g m q (fun x => w0 * f x + b0)) as [c2 [Hc2 E2]].
      { intros x Hx; apply slope_of_g; unfold m, Rmin, Rmax in Hx;
          destruct (Rle_dec ((p + q) / 2) q); lra. }
      { intros x Hx; apply continuity_pt_filterlim, (ex_derive_continuous g).
        eexists; apply slope_of_g; unfold m, Rmin, Rmax in Hx;
          destruct (Rle_dec ((p + q) / 2) q); lra. }
      unfold m, Rmin, Rmax in Hc1, Hc2, E1, E2.
      destruct (Rle_dec p ((p + q) / 2)), (Rle_dec ((p + q) / 2) q); try lra.
      * (* p < q: c2 lies beyond p, and c1 does not lie before it. *)
        assert (f p < f c2) by (apply f_increasing; lra).
        assert (f p <= f c1).
        { destruct (Req_dec p c1) as [<-|]; [lra|].
          left; apply f_increasing; lra. }
        assert (w0 * f c2 < w0 * f p) by nra.
        assert (w0 * f c1 <= w0 * f p) by nra.
        nra.
      * (* q < p *)
        assert (f c2 < f p) by (apply f_increasing; lra).
        assert (f c1 <= f p).
        { destruct (Req_dec c1 p) as [->|]; [lra|].
          left; apply f_increasing; lra. }
        assert (w0 * f p < w0 * f c2) by nra.
        assert (w0 * f p <= w0 * f c1) by nra.
        nra.
    + unfold Rmin, Rmax in Hc; destruct (Rle_dec p q).
      * assert (f p < f c) by (apply f_increasing; lra).
        assert (w0 * f c < w0 * f p) by nra.
        nra.
      * assert (f c < f p) by (apply f_increasing; lra).
        assert (w0 * f p < w0 * f c) by nra.
        nra.
Qed.

(** At 0, where f may be minus infinity, by continuity: first not strictly. *)
Lemma at_most_tangent_at_0 p : 0 < p -> p <= 1 -> g 0 <= tangent p 0.
Proof.
  intros Hp Hp1.
  apply (filterlim_le (F := at_right 0) g (tangent p) (g 0) (tangent p 0)).
  - unfold at_right, within.
    exists (mkposreal p Hp); intros x Hx Hx0.
    left; apply below_tangent_inside; try lra.
    + change (Rabs (x - 0) < p) in Hx; rewrite Rminus_0_r in Hx.
      rewrite Rabs_pos_eq in Hx; lra.
    + change (Rabs (x - 0) < p) in Hx; rewrite Rminus_0_r in Hx.
      rewrite Rabs_pos_eq in Hx; lra.
  - exact g_continuous_at_0.
  - eapply filterlim_filter_le_1; [apply filter_le_within|].
    apply (ex_derive_continuous (tangent p) 0).
    unfold tangent; auto_derive; trivial.
Qed.

Lemma below_tangent p q :
  0 < p -> p <= 1 -> 0 <= q -> q <= 1 -> q <> p -> g q < tangent p q.
Proof.
  intros Hp Hp1 Hq Hq1 Hne.
  destruct (Req_dec q 0) as [->|]; [|apply below_tangent_inside; lra].
  pose proof (at_most_tangent_at_0 (p / 2)) as H0.
  pose proof (below_tangent_inside p (p / 2)) as H1.
  assert (f (p / 2) < f p) by (apply f_increasing; lra).
  assert (w0 * f p < w0 * f (p / 2)) by nra.
  unfold tangent in *.
  assert (g 0 <= g (p / 2) + (w0 * f (p / 2) + b0) * (0 - p / 2)) by (apply H0; lra).
  assert (g (p / 2) < g p + (w0 * f p + b0) * (p / 2 - p)) by (apply H1; lra).
  nra.
Qed.

(** The weighted sum of both metrics. *)
Let value (n : nat) (q p : nat -> R) : R :=
  diversity g n q - w0 * quality f n q p.

Lemma gap_of_sums n q p :
  Sum n (fun i => tangent (p i) (q i)) - diversity g n p =
  w0 * (quality f n q p - quality f n p p) + b0 * (Sum n q - Sum n p).
Proof.
  unfold tangent, quality, diversity.
  induction n as [|n IH]; simpl; [lra|nra].
Qed.

Theorem value_is_greatest_at_P n p q :
  interior n p -> distribution n q ->
  (exists k, (k < n)%nat /\ q k <> p k) -> value n q p < value n p p.
Proof.
  intros [Hp Hp1] Hq [k [Hk Hne]].
  assert (distribution n p) as Dp by (split; [intros i Hi; left; auto | exact Hp1]).
  assert (Sum n (fun i => g (q i)) < Sum n (fun i => tangent (p i) (q i))) as H.
  { assert (forall i, (i < n)%nat -> q i <> p i -> g (q i) < tangent (p i) (q i))
      as strict.
    { intros i Hi Hi'; apply below_tangent; auto.
      - apply (probability_at_most_1 n); assumption.
      - destruct Hq; auto.
      - apply (probability_at_most_1 n); assumption. }
    apply Sum_lt with (k := k); auto.
    intros i Hi; destruct (Req_dec (q i) (p i)) as [E|E].
    - rewrite E; unfold tangent; lra.
    - left; auto. }
  pose proof (gap_of_sums n q p) as E.
  destruct Hq as [_ Hq1]; rewrite Hq1, Hp1 in E.
  unfold value, diversity in *; lra.
Qed.

(** What is as good as P in both is P: there is no better model. *)
Theorem theorem_3_if n p q :
  interior n p -> distribution n q ->
  quality f n q p >= quality f n p p -> diversity g n q >= diversity g n p ->
  forall i, (i < n)%nat -> q i = p i.
Proof.
  intros Hp Hq HU HV i Hi.
  destruct (Req_dec (q i) (p i)) as [E|E]; [exact E|exfalso].
  assert (value n q p < value n p p) as H
    by (apply value_is_greatest_at_P; auto; exists i; auto).
  unfold value in H; nra.
Qed.

Corollary P_is_Pareto_optimal n p : interior n p -> Pareto_optimal f g n p p.
Proof.
  intro Hp; split.
  - destruct Hp as [H0 H1]; split; [intros i Hi; left; auto | exact H1].
  - intros r Hr HU HV.
    pose proof (theorem_3_if n p r Hp Hr HU HV) as E.
    split; apply Sum_ext; intros i Hi; rewrite (E i Hi); reflexivity.
Qed.

End Theorem_3.

(** ** Log-likelihood and Shannon entropy, with 0 log 0 = 0. *)

Definition entropy_term (x : R) : R := - (x * ln x).

Lemma entropy_term_continuous_at_0 :
  filterlim entropy_term (at_right 0) (locally (entropy_term 0)).
Proof.
  unfold entropy_term at 2; rewrite Rmult_0_l, Ropp_0.
  apply filterlim_locally; intro eps.
  destruct eps as [e He]; simpl.
  (* |x log x| < 2 sqrt x, since log y < y at y = 1 / sqrt x. *)
  assert (0 < Rmin 1 ((e / 2) * (e / 2))) as Hd by (apply Rmin_pos; nra).
  exists (mkposreal _ Hd); intros x Hx Hx0.
  change (Rabs (x - 0) < Rmin 1 (e / 2 * (e / 2))) in Hx.
  change (Rabs (- (x * ln x) - 0) < e).
  rewrite Rminus_0_r in *; rewrite Rabs_pos_eq in Hx by lra.
  pose proof (Rmin_l 1 (e / 2 * (e / 2))); pose proof (Rmin_r 1 (e / 2 * (e / 2))).
  assert (0 < sqrt x) as Hs by (apply sqrt_lt_R0; lra).
  assert (sqrt x * sqrt x = x) as Hss by (apply sqrt_sqrt; lra).
  assert (sqrt x < e / 2) as Hse by nra.
  assert (ln (/ sqrt x) < / sqrt x) as Hl.
  { apply Rlt_le_trans with (/ sqrt x - 1 + 1); [|lra].
    pose proof (exp_ineq1_le (ln (/ sqrt x))) as He1.
    rewrite exp_ln in He1 by (apply Rinv_0_lt_compat; exact Hs); lra. }
  rewrite ln_Rinv in Hl by exact Hs.
  assert (ln x = 2 * ln (sqrt x)) as Hln.
  { rewrite <- Hss at 1; rewrite ln_mult by exact Hs; lra. }
  assert (ln x <= 0) as Hneg by (rewrite <- ln_1; apply ln_le; lra).
  assert (0 <= - (x * ln x)) by nra.
  rewrite Rabs_pos_eq by assumption.
  assert (x * / sqrt x = sqrt x) as Hq.
  { rewrite <- Hss at 1; field; lra. }
  assert (- (x * ln x) < 2 * sqrt x); [|lra].
  rewrite Hln.
  assert (x * - ln (sqrt x) < x * / sqrt x) by (apply Rmult_lt_compat_l; lra).
  lra.
Qed.

Theorem LL_SE_is_compatible n p : interior n p -> Pareto_optimal ln entropy_term n p p.
Proof.
  apply (P_is_Pareto_optimal ln entropy_term (-1) (-1)); [lra | | |].
  - intros x y Hx Hxy _; apply ln_increasing; lra.
  - intros x Hx _; unfold entropy_term; auto_derive; [lra | field; lra].
  - exact entropy_term_continuous_at_0.
Qed.

(** ** Coverage rate and repetition rate. *)

Definition repetition_term (x : R) : R := - (x * x).

Theorem CR_NRR_is_compatible n p :
  interior n p -> Pareto_optimal (fun x => x) repetition_term n p p.
Proof.
  apply (P_is_Pareto_optimal (fun x => x) repetition_term (-2) 0); [lra | | |].
  - intros x y _ Hxy _; exact Hxy.
  - intros x _ _; unfold repetition_term; auto_derive; [trivial | lra].
  - eapply filterlim_filter_le_1; [apply filter_le_within|].
    apply (ex_derive_continuous repetition_term 0).
    unfold repetition_term; auto_derive; trivial.
Qed.
