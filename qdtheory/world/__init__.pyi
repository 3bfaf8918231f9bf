from .distributions import (
    entropy as entropy,
    fingerprint as fingerprint,
    mix as mix,
    normalize as normalize,
    sample as sample,
    temper as temper,
)
from .language_models import LSTMLanguageModel as LSTMLanguageModel, oracle as oracle
from .markov import markov_projection as markov_projection
from .records import Estimate as Estimate
from .spaces import TextSpace as TextSpace
