(** Log-likelihood with the negative repetition rate is no compatible pair: a real
    distribution of three texts and a model that is better in both metrics.

    Notebook 04, claim T3.8; in Python: qdtheory.LL_NRR. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Rcomplements.
Require Import QD.Sums QD.Theorem3.
Open Scope R_scope.

Definition real (i : nat) : R :=
  match i with O => 6 / 10 | S O => 3 / 10 | _ => 1 / 10 end.

Definition model (i : nat) : R :=
  match i with O => 56 / 100 | S O => 37 / 100 | _ => 7 / 100 end.

(** The gain in quality, a hundred times: of logarithms of powers. *)
Lemma gain_in_quality : 4 * ln (6 / 10) + 3 * ln (1 / 10) < 7 * ln (3 / 10).
Proof.
  replace 4 with (INR 4) by (simpl; lra).
  replace 7 with (INR 7) by (simpl; lra).
  replace 3 with (INR 3) at 1 by (simpl; lra).
  rewrite <- !ln_pow by lra.
  rewrite <- ln_mult by (apply pow_lt; lra).
  apply ln_increasing; [apply Rmult_lt_0_compat; apply pow_lt|]; lra.
Qed.

Theorem LL_NRR_is_not_compatible :
  interior 3 real /\ distribution 3 model /\
  quality ln 3 model real > quality ln 3 real real /\
  diversity repetition_term 3 model > diversity repetition_term 3 real.
Proof.
  repeat split.
  - intros i Hi; destruct i as [|[|[|i]]]; simpl; try lra; lia.
  - simpl; lra.
  - intros i Hi; destruct i as [|[|[|i]]]; simpl; try lra; lia.
  - simpl; lra.
  - pose proof gain_in_quality; unfold quality; simpl; lra.
  - unfold diversity, repetition_term; simpl; lra.
Qed.
