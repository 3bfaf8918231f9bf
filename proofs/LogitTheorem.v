(** The logit theorem: of all rewards of an optimal discriminator, only the logit
    makes a generator optimise a quality-diversity pair, and the pair is LL-SE.

    Notebook 20, claims N20.3, N20.6 and N20.7; in Python:
    qdtheory.rewards.check_reward.

    With D = P / (P + Q) a step on the reward rho(D) is the gradient of an objective
    whose partial derivative by Q_i is rho(P_i / (P_i + Q_i)). That of a pair
    sum Q_i f(P_i) + sum g(Q_i) is f(P_i) + g'(Q_i). On distributions only differences
    between texts count. So the two objectives agree, up to what does not depend on Q,
    only if [same_differences] holds; two texts of at least three have free
    probabilities below 1. *)

From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Definition same_differences (rho f dg : R -> R) : Prop :=
  forall p1 q1 p2 q2, 0 < p1 -> 0 < p2 -> p1 + p2 < 1 ->
    0 < q1 -> 0 < q2 -> q1 + q2 < 1 ->
    rho (p1 / (p1 + q1)) - rho (p2 / (p2 + q2)) =
    (f p1 + dg q1) - (f p2 + dg q2).

Definition logit (d : R) : R := ln (d / (1 - d)).

(** "If": the logit is log-likelihood and entropy. *)
Theorem logit_is_LL_SE :
  same_differences logit ln (fun x => - ln x - 1).
Proof.
  assert (forall p q, 0 < p -> 0 < q -> logit (p / (p + q)) = ln p - ln q) as E.
  { intros p q Hp Hq; unfold logit.
    replace (p / (p + q) / (1 - p / (p + q))) with (p / q) by (field; lra).
    unfold Rdiv; rewrite ln_mult, ln_Rinv; try lra.
    apply Rinv_0_lt_compat; lra. }
  intros p1 q1 p2 q2 Hp1 Hp2 _ Hq1 Hq2 _.
  rewrite (E p1 q1), (E p2 q2) by assumption; lra.
Qed.

Lemma entropy_slope x : 0 < x -> is_derive (fun x => - (x * ln x)) x (- ln x - 1).
Proof. intro Hx; auto_derive; [exact Hx | field; lra]. Qed.

(** "Only if": for a reward with a derivative. *)
Section Only_if.

Variables (rho f dg : R -> R).
Hypothesis rho_derivable : forall d, 0 < d -> d < 1 -> ex_derive rho d.
Hypothesis same : same_differences rho f dg.

(** The reward as a function of the logarithm of Q / P. *)
Let psi (t : R) : R := rho (/ (1 + exp t)).

Lemma share_inside t : 0 < / (1 + exp t) < 1.
Proof.
  pose proof (exp_pos t); split; [apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1; apply Rinv_lt_contravar; lra.
Qed.

Lemma psi_derivable t : ex_derive psi t.
Proof.
  unfold psi; destruct (share_inside t) as [H0 H1].
  apply (ex_derive_comp rho (fun t => / (1 + exp t)) t).
  - apply rho_derivable; assumption.
  - auto_derive; pose proof (exp_pos t); lra.
Qed.

(** For probabilities below 1/2, psi of a difference of logarithms is a sum. *)
Lemma psi_splits :
  exists K, forall a b, a < ln (/ 2) -> b < ln (/ 2) ->
    psi (b - a) = f (exp a) + dg (exp b) + K.
Proof.
  exists (rho (/ 2 / (/ 2 + / 2)) - f (/ 2) - dg (/ 2)).
  intros a b Ha Hb.
  assert (0 < / 2) as Hh by lra.
  assert (exp a < / 2) as Ea by
    (rewrite <- (exp_ln (/ 2)) by lra; apply exp_increasing; exact Ha).
  assert (exp b < / 2) as Eb by
    (rewrite <- (exp_ln (/ 2)) by lra; apply exp_increasing; exact Hb).
  pose proof (exp_pos a); pose proof (exp_pos b).
  pose proof (same (exp a) (exp b) (/ 2) (/ 2)) as S.
  assert (exp a / (exp a + exp b) = / (1 + exp (b - a))) as E.
  { unfold Rminus; rewrite exp_plus, exp_Ropp; field; lra. }
  unfold psi; rewrite <- E; lra.
Qed.

(** So its slope at b - a depends on b alone, and every t is such a difference. *)
Lemma psi_slope_constant s t : Derive psi s = Derive psi t.
Proof.
  destruct psi_splits as [K HK].
  set (b := ln (/ 2) - 1 + Rmin 0 (Rmin s t)).
  assert (b <= ln (/ 2) - 1 /\ b - s <= ln (/ 2) - 1 /\ b - t <= ln (/ 2) - 1)
    as [Hb [Hs Ht]].
  { unfold b; pose proof (Rmin_l 0 (Rmin s t)); pose proof (Rmin_r 0 (Rmin s t));
      pose proof (Rmin_l s t); pose proof (Rmin_r s t); lra. }
  assert (forall r, b - r <= ln (/ 2) - 1 ->
    Derive psi r = Derive (fun x => dg (exp x)) b) as D.
  { intros r Hr.
    transitivity (Derive (fun x => psi (x - (b - r))) b).
    - symmetry; apply is_derive_unique.
      replace (Derive psi r) with (scal 1 (Derive psi r))
        by (unfold scal; simpl; unfold mult; simpl; lra).
      apply (is_derive_comp psi (fun x => x - (b - r)) b).
      + replace (b - (b - r)) with r by lra.
        apply Derive_correct, psi_derivable.
      + auto_derive; [trivial | lra].
    - assert (locally b (fun x => psi (x - (b - r)) =
        dg (exp x) + (f (exp (b - r)) + K))) as L.
      { exists (mkposreal 1 Rlt_0_1); intros x Hx.
        change (Rabs (x - b) < 1) in Hx; apply Rabs_def2 in Hx.
        rewrite HK by lra; lra. }
      assert (ex_derive (fun x => psi (x - (b - r))) b) as X.
      { apply (ex_derive_comp psi (fun x => x - (b - r)) b);
          [apply psi_derivable | auto_derive; trivial]. }
      assert (is_derive (fun x => psi (x - (b - r)) - (f (exp (b - r)) + K)) b
        (Derive (fun x => psi (x - (b - r))) b)) as Y.
      { replace (Derive (fun x => psi (x - (b - r))) b)
          with (minus (Derive (fun x => psi (x - (b - r))) b) zero)
          by (unfold minus, plus, opp, zero; simpl; lra).
        apply (is_derive_minus (fun x => psi (x - (b - r)))
          (fun _ => f (exp (b - r)) + K)).
        - apply Derive_correct; exact X.
        - apply (is_derive_const (f (exp (b - r)) + K) b). }
      symmetry; apply is_derive_unique.
      apply (is_derive_ext_loc (fun x => psi (x - (b - r)) - (f (exp (b - r)) + K)));
        [|exact Y].
      destruct L as [eps L]; exists eps; intros x Hx; rewrite (L x Hx); lra. }
  rewrite (D s Hs), (D t Ht); reflexivity.
Qed.

Lemma psi_affine t : psi t = psi 0 + Derive psi 0 * t.
Proof.
  destruct (Req_dec t 0) as [->|Ht]; [lra|].
  destruct (MVT_gen psi 0 t (Derive psi)) as [c [_ E]].
  - intros x _; apply Derive_correct, psi_derivable.
  - intros x _; apply continuity_pt_filterlim, (ex_derive_continuous psi),
      psi_derivable.
  - rewrite (psi_slope_constant c 0) in E; lra.
Qed.

Theorem only_the_logit :
  exists c k, forall d, 0 < d -> d < 1 -> rho d = c * logit d + k.
Proof.
  exists (- Derive psi 0), (psi 0); intros d H0 H1.
  assert (0 < d / (1 - d)) as H by (apply Rdiv_lt_0_compat; lra).
  assert (/ (1 + exp (- logit d)) = d) as E.
  { unfold logit; rewrite exp_Ropp, exp_ln by exact H; field; lra. }
  rewrite <- E at 1.
  change (rho (/ (1 + exp (- logit d)))) with (psi (- logit d)).
  rewrite psi_affine; lra.
Qed.

End Only_if.
