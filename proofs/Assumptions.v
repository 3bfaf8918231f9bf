(** What each theorem rests on. *)

Require Import QD.Theorem1 QD.Theorem2 QD.Theorem3 QD.LogitTheorem QD.TwoErrors
  QD.Counterexample.

Print Assumptions theorem_1_quality.
Print Assumptions theorem_1_diversity.
Print Assumptions slopes_that_fall.
Print Assumptions lemma_1_order.
Print Assumptions lemma_1_ties.
Print Assumptions theorem_2_maximiser.
Print Assumptions theorem_2_if.
Print Assumptions theorem_2_uniform.
Print Assumptions theorem_2_modes.
Print Assumptions powers_are_Pareto_optimal.
Print Assumptions theorem_3_if.
Print Assumptions P_is_Pareto_optimal.
Print Assumptions LL_SE_is_compatible.
Print Assumptions CR_NRR_is_compatible.
Print Assumptions logit_is_LL_SE.
Print Assumptions entropy_slope.
Print Assumptions only_the_logit.
Print Assumptions two_errors_bound.
Print Assumptions two_errors_best.
Print Assumptions two_errors_only_if.
Print Assumptions two_errors_if.
Print Assumptions LL_SE_errors_cancel.
Print Assumptions LL_NRR_is_not_compatible.
