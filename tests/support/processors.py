# SPDX-License-Identifier: Apache-2.0
"""Custom logit processors, in the form in which a request carries them."""

import json

import dill


class Unchanged:
    """A logit processor that does nothing; the engine's processes import it by name."""

    def __call__(self, logits, custom_param_list=None):
        return logits


def serialise(processor: type) -> str:
    """What `CustomLogitProcessor.to_str` gives, without importing SGLang here."""
    return json.dumps({"callable": dill.dumps(processor).hex()})
