(** Theorem 1, "if", and Lemma 1.

    Li et al. 2020, section 3.2; notebook 02, claims T1.1 to T1.5, and notebook 03,
    claim L1.1. In Python: qdtheory.check_rationality and qdtheory.pareto_optimum. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Require Import QD.Sums.
Open Scope R_scope.

(** The mass e moves from text j to text i. *)
Definition moved (q : nat -> R) (i j : nat) (e : R) (k : nat) : R :=
  if Nat.eq_dec k i then q i + e else if Nat.eq_dec k j then q j - e else q k.

(** Mass that moves to a more probable text raises quality. *)
Definition Property_1 (f : R -> R) (n : nat) : Prop :=
  forall p q i j e, interior n p -> distribution n q ->
    (i < n)%nat -> (j < n)%nat -> p j < p i -> 0 < e -> e <= q j ->
    quality f n q p < quality f n (moved q i j e) p.

(** Mass that moves to a text of no smaller probability lowers diversity. *)
Definition Property_2 (g : R -> R) (n : nat) : Prop :=
  forall q i j e, distribution n q ->
    (i < n)%nat -> (j < n)%nat -> i <> j -> q j <= q i -> 0 < e -> e < q j ->
    diversity g n (moved q i j e) < diversity g n q.

Lemma moved_i q i j e : moved q i j e i = q i + e.
Proof. unfold moved; destruct (Nat.eq_dec i i); [reflexivity|contradiction]. Qed.

Lemma moved_j q i j e : i <> j -> moved q i j e j = q j - e.
Proof.
  intro H; unfold moved.
  destruct (Nat.eq_dec j i); [congruence|].
  destruct (Nat.eq_dec j j); [reflexivity|contradiction].
Qed.

Lemma moved_k q i j e k : k <> i -> k <> j -> moved q i j e k = q k.
Proof.
  intros Hi Hj; unfold moved.
  destruct (Nat.eq_dec k i); [contradiction|].
  destruct (Nat.eq_dec k j); [contradiction|reflexivity].
Qed.

(** The probabilities of two texts add up to at most 1. *)
Lemma two_at_most_1 n q i j :
  distribution n q -> (i < n)%nat -> (j < n)%nat -> i <> j -> q i + q j <= 1.
Proof.
  intros [H0 H1] Hi Hj Hij.
  pose proof (Sum_two n q (fun k => if Nat.eq_dec k i then 0 else
    if Nat.eq_dec k j then 0 else q k) i j Hi Hj Hij) as E.
  simpl in E.
  destruct (Nat.eq_dec i i); [|contradiction].
  destruct (Nat.eq_dec j i); [congruence|].
  destruct (Nat.eq_dec j j); [|contradiction].
  rewrite H1 in E.
  set (rest := fun k => _) in E.
  assert (0 <= Sum n rest) as Hrest.
  { replace 0 with (Sum n (fun _ => 0)) by
      (clear; induction n as [|n IH]; simpl; lra).
    apply Sum_le; intros k Hk; unfold rest.
    destruct (Nat.eq_dec k i); [lra|].
    destruct (Nat.eq_dec k j); [lra|auto]. }
  assert (1 - Sum n rest = q i - 0 + (q j - 0)); [|lra].
  apply E; intros k Hk Hki Hkj; unfold rest.
  destruct (Nat.eq_dec k i); [contradiction|].
  destruct (Nat.eq_dec k j); [contradiction|reflexivity].
Qed.

Section Theorem_1.

Variables (f g : R -> R).

Theorem theorem_1_quality :
  (forall x1 x2, 0 < x2 -> x2 < x1 -> x1 + x2 <= 1 -> f x2 < f x1) ->
  forall n, Property_1 f n.
Proof.
  intros rises n p q i j e [Hp Hp1] Hq Hi Hj Hij He Hej.
  assert (i <> j) as Hne by (intros ->; lra).
  assert (f (p j) < f (p i)).
  { apply rises; auto.
    apply (two_at_most_1 n); auto.
    split; [intros k Hk; left; auto | exact Hp1]. }
  pose proof (Sum_two n (fun k => moved q i j e k * f (p k))
    (fun k => q k * f (p k)) i j Hi Hj Hne) as E.
  simpl in E; rewrite moved_i, moved_j in E by exact Hne.
  unfold quality.
  assert (Sum n (fun k => moved q i j e k * f (p k)) -
    Sum n (fun k => q k * f (p k)) =
    (q i + e) * f (p i) - q i * f (p i) + ((q j - e) * f (p j) - q j * f (p j))).
  { apply E; intros k Hk Hki Hkj; rewrite moved_k by assumption; reflexivity. }
  nra.
Qed.

(** Two texts that share the mass C are the less diverse the more they differ. *)
Definition share_falls : Prop :=
  forall C x y, C <= 1 -> C / 2 <= x -> x < y -> y < C ->
    g y + g (C - y) < g x + g (C - x).

Theorem theorem_1_diversity : share_falls -> forall n, Property_2 g n.
Proof.
  intros falls n q i j e Hq Hi Hj Hij Hji He Hej.
  pose proof (two_at_most_1 n q i j Hq Hi Hj Hij).
  assert (g (q i + e) + g (q i + q j - (q i + e)) <
          g (q i) + g (q i + q j - q i)) as H1 by (apply falls; lra).
  replace (q i + q j - (q i + e)) with (q j - e) in H1 by lra.
  replace (q i + q j - q i) with (q j) in H1 by lra.
  pose proof (Sum_two n (fun k => g (moved q i j e k)) (fun k => g (q k))
    i j Hi Hj Hij) as E.
  simpl in E; rewrite moved_i, moved_j in E by exact Hij.
  unfold diversity.
  assert (Sum n (fun k => g (moved q i j e k)) - Sum n (fun k => g (q k)) =
    g (q i + e) - g (q i) + (g (q j - e) - g (q j))); [|lra].
  apply E; intros k Hk Hki Hkj; rewrite moved_k by assumption; reflexivity.
Qed.

(** By derivatives, as the paper states it. *)
Theorem slopes_that_fall (dg : R -> R) :
  (forall x, 0 < x -> x < 1 -> is_derive g x (dg x)) ->
  (forall x1 x2, 0 < x2 -> x2 < x1 -> x1 + x2 <= 1 -> dg x1 < dg x2) ->
  share_falls.
Proof.
  intros derivative falls C x y HC Hx Hxy Hy.
  assert (forall z, x <= z -> z <= y ->
    is_derive (fun z => g z + g (C - z)) z (dg z - dg (C - z))) as D.
  { intros z Hz1 Hz2.
    assert (is_derive g z (dg z)) as D1 by (apply derivative; lra).
    assert (is_derive g (C - z) (dg (C - z))) as D2 by (apply derivative; lra).
    replace (dg z - dg (C - z)) with (plus (dg z) (scal (-1) (dg (C - z))))
      by (unfold plus, scal; simpl; unfold mult; simpl; lra).
    apply (is_derive_plus g (fun z => g (C - z))); [exact D1|].
    apply (is_derive_comp g (fun z => C - z) z); [exact D2|].
    auto_derive; [trivial | lra]. }
  (* The mean value theorem beyond a point that is not the middle. *)
  assert (forall a b, x <= a -> a < b -> b <= y -> C / 2 < a ->
    g b + g (C - b) < g a + g (C - a)) as part.
  { intros a b Ha Hab Hb Hm.
    destruct (MVT_gen (fun z => g z + g (C - z)) a b (fun z => dg z - dg (C - z)))
      as [c [Hc E]].
    - intros z Hz; apply D; unfold Rmin, Rmax in Hz; destruct (Rle_dec a b); lra.
    - intros z Hz; apply continuity_pt_filterlim.
      apply (ex_derive_continuous (fun z => g z + g (C - z))).
      eexists; apply D; unfold Rmin, Rmax in Hz; destruct (Rle_dec a b); lra.
    - unfold Rmin, Rmax in Hc; destruct (Rle_dec a b); [|lra].
      assert (dg c < dg (C - c)) by (apply falls; lra).
      nra. }
  destruct (Req_dec x (C / 2)) as [Em|Em]; [|apply part; lra].
  (* From the middle: the value there is the limit of values beyond. *)
  set (m := (x + y) / 2).
  assert (g y + g (C - y) < g m + g (C - m)) by (unfold m; apply part; lra).
  assert (g m + g (C - m) <= g x + g (C - x)); [|lra].
  destruct (MVT_gen (fun z => g z + g (C - z)) x m (fun z => dg z - dg (C - z)))
    as [c [Hc E]].
  - intros z Hz; apply D; unfold m, Rmin, Rmax in Hz;
      destruct (Rle_dec x ((x + y) / 2)); lra.
  - intros z Hz; apply continuity_pt_filterlim.
    apply (ex_derive_continuous (fun z => g z + g (C - z))).
    eexists; apply D; unfold m, Rmin, Rmax in Hz;
      destruct (Rle_dec x ((x + y) / 2)); lra.
  - unfold m, Rmin, Rmax in Hc, E; destruct (Rle_dec x ((x + y) / 2)); [|lra].
    fold m in E |- *.
    destruct (Req_dec c (C - c)) as [Ec|Ec].
    + replace (C - c) with c in E by lra. unfold m in *; nra.
    + assert (dg c < dg (C - c)) by (apply falls; lra).
      unfold m in *; nra.
Qed.

End Theorem_1.

(** ** Lemma 1: a Pareto-optimal model keeps order and ties. *)

Section Lemma_1.

Variables (f g : R -> R).
Hypothesis f_increasing : forall x y, 0 < x -> x < y -> y <= 1 -> f x < f y.
Hypothesis g_concave :
  forall x y, 0 <= x -> x <= 1 -> 0 <= y -> y <= 1 -> x <> y ->
    (g x + g y) / 2 < g ((x + y) / 2).

Lemma moved_distribution n q i j e :
  distribution n q -> (i < n)%nat -> (j < n)%nat -> i <> j ->
  0 <= q i + e -> 0 <= q j - e -> distribution n (moved q i j e).
Proof.
  intros [H0 H1] Hi Hj Hij Hie Hje; split.
  - intros k Hk; unfold moved.
    destruct (Nat.eq_dec k i); [exact Hie|].
    destruct (Nat.eq_dec k j); [exact Hje|auto].
  - pose proof (Sum_two n (moved q i j e) q i j Hi Hj Hij) as E.
    rewrite moved_i, moved_j, H1 in E by exact Hij.
    assert (Sum n (moved q i j e) - 1 = q i + e - q i + (q j - e - q j)); [|lra].
    apply E; intros k Hk Hki Hkj; apply moved_k; assumption.
Qed.

Lemma quality_moved n q p i j e :
  (i < n)%nat -> (j < n)%nat -> i <> j ->
  quality f n (moved q i j e) p - quality f n q p = e * (f (p i) - f (p j)).
Proof.
  intros Hi Hj Hij; unfold quality.
  rewrite (Sum_two n (fun k => moved q i j e k * f (p k))
    (fun k => q k * f (p k)) i j Hi Hj Hij).
  - rewrite moved_i, moved_j by exact Hij; lra.
  - intros k Hk Hki Hkj; rewrite moved_k by assumption; reflexivity.
Qed.

Lemma diversity_moved n q i j e :
  (i < n)%nat -> (j < n)%nat -> i <> j ->
  diversity g n (moved q i j e) - diversity g n q =
  g (q i + e) + g (q j - e) - g (q i) - g (q j).
Proof.
  intros Hi Hj Hij; unfold diversity.
  rewrite (Sum_two n (fun k => g (moved q i j e k)) (fun k => g (q k)) i j Hi Hj Hij).
  - rewrite moved_i, moved_j by exact Hij; lra.
  - intros k Hk Hki Hkj; rewrite moved_k by assumption; reflexivity.
Qed.

Theorem lemma_1_order n p q i j :
  interior n p -> Pareto_optimal f g n q p -> (i < n)%nat -> (j < n)%nat ->
  p j < p i -> q j <= q i.
Proof.
  intros [Hp Hp1] [Hq best] Hi Hj Hij.
  destruct (Rle_lt_dec (q j) (q i)) as [H|H]; [exact H|exfalso].
  assert (i <> j) as Hne by (intros ->; lra).
  assert (p i <= 1).
  { apply (probability_at_most_1 n); [|exact Hi].
    split; [intros k Hk; left; auto | exact Hp1]. }
  assert (f (p j) < f (p i)) by (apply f_increasing; auto).
  (* The two texts change places. *)
  set (e := q j - q i).
  pose proof (quality_moved n q p i j e Hi Hj Hne) as EU.
  pose proof (diversity_moved n q i j e Hi Hj Hne) as EV.
  replace (q i + e) with (q j) in EV by (unfold e; lra).
  replace (q j - e) with (q i) in EV by (unfold e; lra).
  assert (0 < e * (f (p i) - f (p j))) by (unfold e; nra).
  destruct (best (moved q i j e)) as [HU _]; try lra.
  apply moved_distribution; auto; unfold e; destruct Hq as [N0 _];
    pose proof (N0 i Hi); pose proof (N0 j Hj); lra.
Qed.

Theorem lemma_1_ties n p q i j :
  Pareto_optimal f g n q p -> (i < n)%nat -> (j < n)%nat -> p i = p j -> q i = q j.
Proof.
  intros [Hq best] Hi Hj Hij.
  destruct (Req_dec (q i) (q j)) as [H|H]; [exact H|exfalso].
  assert (i <> j) as Hne by (intros ->; apply H; reflexivity).
  pose proof Hq as [H0 _].
  pose proof (H0 i Hi); pose proof (H0 j Hj).
  pose proof (probability_at_most_1 n q i Hq Hi).
  pose proof (probability_at_most_1 n q j Hq Hj).
  (* Both take their mean. *)
  set (e := (q j - q i) / 2).
  pose proof (quality_moved n q p i j e Hi Hj Hne) as EU.
  pose proof (diversity_moved n q i j e Hi Hj Hne) as EV.
  replace (q i + e) with ((q i + q j) / 2) in EV by (unfold e; lra).
  replace (q j - e) with ((q i + q j) / 2) in EV by (unfold e; lra).
  assert ((g (q i) + g (q j)) / 2 < g ((q i + q j) / 2)) by (apply g_concave; auto).
  rewrite Hij in EU.
  destruct (best (moved q i j e)) as [_ HV]; try lra.
  apply moved_distribution; auto; unfold e; lra.
Qed.

End Lemma_1.
