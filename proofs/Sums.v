(** Finite sums, distributions, and the two metrics of the general form.

    A text is a number below n. A separable pair has
      quality    U(Q; P) = sum of Q_i f(P_i)    (qdtheory.SeparablePair.quality)
      diversity  V(Q)    = sum of g(Q_i)        (qdtheory.SeparablePair.diversity)
    as in Li et al. 2020, section 3.1. *)

From Coq Require Import Reals Lra Lia.
Open Scope R_scope.

Fixpoint Sum (n : nat) (a : nat -> R) : R :=
  match n with O => 0 | S m => Sum m a + a m end.

Definition distribution (n : nat) (q : nat -> R) : Prop :=
  (forall i, (i < n)%nat -> 0 <= q i) /\ Sum n q = 1.

(** No probability is 0. *)
Definition interior (n : nat) (p : nat -> R) : Prop :=
  (forall i, (i < n)%nat -> 0 < p i) /\ Sum n p = 1.

Definition quality (f : R -> R) (n : nat) (q p : nat -> R) : R :=
  Sum n (fun i => q i * f (p i)).

Definition diversity (g : R -> R) (n : nat) (q : nat -> R) : R :=
  Sum n (fun i => g (q i)).

(** Definition 1 of the paper: no model is as good in both and better in one. *)
Definition Pareto_optimal (f g : R -> R) (n : nat) (q p : nat -> R) : Prop :=
  distribution n q /\
  forall r, distribution n r ->
    quality f n r p >= quality f n q p -> diversity g n r >= diversity g n q ->
    quality f n r p = quality f n q p /\ diversity g n r = diversity g n q.

Lemma Sum_ext n a b : (forall i, (i < n)%nat -> a i = b i) -> Sum n a = Sum n b.
Proof.
  induction n as [|n IH]; intro H; simpl; [reflexivity|].
  rewrite IH, (H n); [reflexivity | lia |].
  intros i Hi; apply H; lia.
Qed.

Lemma Sum_plus n a b : Sum n (fun i => a i + b i) = Sum n a + Sum n b.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma Sum_scale n c a : Sum n (fun i => c * a i) = c * Sum n a.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma Sum_le n a b : (forall i, (i < n)%nat -> a i <= b i) -> Sum n a <= Sum n b.
Proof.
  induction n as [|n IH]; intro H; simpl; [lra|].
  assert (Sum n a <= Sum n b) by (apply IH; intros i Hi; apply H; lia).
  assert (a n <= b n) by (apply H; lia).
  lra.
Qed.

Lemma Sum_lt n a b k :
  (forall i, (i < n)%nat -> a i <= b i) -> (k < n)%nat -> a k < b k ->
  Sum n a < Sum n b.
Proof.
  induction n as [|n IH]; intros H Hk Hab; simpl; [lia|].
  assert (forall i, (i < n)%nat -> a i <= b i) as Hle by (intros; apply H; lia).
  destruct (Nat.eq_dec k n) as [->|Hne].
  - pose proof (Sum_le n a b Hle); lra.
  - assert (Sum n a < Sum n b) by (apply IH; [exact Hle | lia | exact Hab]).
    assert (a n <= b n) by (apply H; lia).
    lra.
Qed.

(** A term is at most the sum of nonnegative terms. *)
Lemma Sum_term n a k :
  (forall i, (i < n)%nat -> 0 <= a i) -> (k < n)%nat -> a k <= Sum n a.
Proof.
  induction n as [|n IH]; intros H Hk; simpl; [lia|].
  assert (0 <= a n) by (apply H; lia).
  destruct (Nat.eq_dec k n) as [->|Hne].
  - assert (0 <= Sum n a); [|lra].
    replace 0 with (Sum n (fun _ => 0)).
    + apply Sum_le; intros i Hi; apply H; lia.
    + clear; induction n as [|n IH]; simpl; lra.
  - assert (a k <= Sum n a); [|lra].
    apply IH; [intros i Hi; apply H; lia | lia].
Qed.

Lemma probability_at_most_1 n q k : distribution n q -> (k < n)%nat -> q k <= 1.
Proof. intros [H0 H1] Hk; rewrite <- H1; apply Sum_term; assumption. Qed.

(** Two sums that differ in one term. *)
Lemma Sum_one n a b i :
  (i < n)%nat -> (forall k, (k < n)%nat -> k <> i -> a k = b k) ->
  Sum n a - Sum n b = a i - b i.
Proof.
  induction n as [|n IH]; intros Hi H; simpl; [lia|].
  destruct (Nat.eq_dec i n) as [->|Hne].
  - assert (Sum n a = Sum n b) by (apply Sum_ext; intros k Hk; apply H; lia).
    lra.
  - assert (Sum n a - Sum n b = a i - b i)
      by (apply IH; [lia | intros k Hk Hki; apply H; lia]).
    assert (a n = b n) by (apply H; lia).
    lra.
Qed.

(** Two sums that differ in two terms. *)
Lemma Sum_two n a b i j :
  (i < n)%nat -> (j < n)%nat -> i <> j ->
  (forall k, (k < n)%nat -> k <> i -> k <> j -> a k = b k) ->
  Sum n a - Sum n b = (a i - b i) + (a j - b j).
Proof.
  intros Hi Hj Hij H.
  set (c := fun k => if Nat.eq_dec k i then a i else b k).
  assert (Sum n c - Sum n b = c i - b i) as H1.
  { apply Sum_one; [exact Hi|].
    intros k Hk Hki; unfold c; destruct (Nat.eq_dec k i); [contradiction|reflexivity]. }
  assert (Sum n a - Sum n c = a j - c j) as H2.
  { apply Sum_one; [exact Hj|].
    intros k Hk Hkj; unfold c; destruct (Nat.eq_dec k i) as [->|Hki]; auto. }
  unfold c in H1, H2.
  destruct (Nat.eq_dec i i); [|contradiction].
  destruct (Nat.eq_dec j i); [congruence|].
  fold c in H1, H2; lra.
Qed.
