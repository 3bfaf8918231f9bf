from .adversarial import (
    Adversarial as Adversarial,
    CoT as CoT,
    LeakGAN as LeakGAN,
    LeakyLSTM as LeakyLSTM,
    MaliGAN as MaliGAN,
    MaximumLikelihood as MaximumLikelihood,
    RankGAN as RankGAN,
    Sampled as Sampled,
    SeqGAN as SeqGAN,
    SeqGANStep as SeqGANStep,
    discounted_returns as discounted_returns,
    expected_share as expected_share,
)
from .alignment import (
    best_of_n as best_of_n,
    bradley_terry as bradley_terry,
    diversity_price as diversity_price,
    dpo_loss as dpo_loss,
    dpo_optimum as dpo_optimum,
    fitted_rewards as fitted_rewards,
    forward_kl_optimum as forward_kl_optimum,
    kl_optimum as kl_optimum,
    self_training as self_training,
)
from .autoencoder_objectives import (
    AUTOENCODERS as AUTOENCODERS,
    AutoencoderSetup as AutoencoderSetup,
    Elbo as Elbo,
    MatchedCodes as MatchedCodes,
    TransportedCodes as TransportedCodes,
)
from .autoencoders import (
    Autoencoder as Autoencoder,
    LatentGrid as LatentGrid,
    LatentReport as LatentReport,
    circle_grid as circle_grid,
    gauss_hermite_grid as gauss_hermite_grid,
    latent_report as latent_report,
    log_posterior as log_posterior,
    normal_grid as normal_grid,
    refined as refined,
)
from .continuous import (
    AtomTable as AtomTable,
    ContinuousGenerator as ContinuousGenerator,
    ContinuousWGAN as ContinuousWGAN,
    ConvDeconv as ConvDeconv,
    ConvLSTM as ConvLSTM,
    transport_to_texts as transport_to_texts,
)
from .decoders import (
    Beam as Beam,
    BestOf as BestOf,
    Epsilon as Epsilon,
    Eta as Eta,
    Greedy as Greedy,
    MinK as MinK,
    MinP as MinP,
    PLess as PLess,
    Temperature as Temperature,
    TopH as TopH,
    TopK as TopK,
    TopP as TopP,
    Typical as Typical,
    decode as decode,
    next_token_distributions as next_token_distributions,
    text_distribution as text_distribution,
)
from .discriminators import (
    Discriminator as Discriminator,
    LogisticDiscriminator as LogisticDiscriminator,
    OptimalDiscriminator as OptimalDiscriminator,
)
from .markov_chains import (
    MarkovModel as MarkovModel,
    decode_markov as decode_markov,
    markov_metrics as markov_metrics,
    tempered_markov_metrics as tempered_markov_metrics,
)
from .models import (
    LogitTable as LogitTable,
    Model as Model,
    PrefixTable as PrefixTable,
    completion_values as completion_values,
    policy_gradient as policy_gradient,
    prefix_distribution as prefix_distribution,
    token_policy_gradient as token_policy_gradient,
)
from .noise import (
    adam_drift as adam_drift,
    constant_reward_drift as constant_reward_drift,
    expectation as expectation,
    fisher_drift as fisher_drift,
    policy_update as policy_update,
)
from .protocol import (
    Range as Range,
    Trials as Trials,
    Tuned as Tuned,
    of_samples as of_samples,
    random_search as random_search,
)
from .reconstruction import (
    Reconstruction as Reconstruction,
    greedy_distribution as greedy_distribution,
    greedy_texts as greedy_texts,
    reconstruct as reconstruct,
)
from .rewards import (
    optimal_discriminator as optimal_discriminator,
    optimal_rewards as optimal_rewards,
    reward_objective as reward_objective,
)
from .training import (
    History as History,
    Objective as Objective,
    train as train,
)
from .transport import (
    Coupling as Coupling,
    WGAN as WGAN,
    optimal_transport as optimal_transport,
    sorted_plan as sorted_plan,
    wasserstein_critic as wasserstein_critic,
    wasserstein_distance as wasserstein_distance,
)
