"""Generated addresses: well-formed labels, variety, determinism."""

import re

import numpy as np
import pytest

from seqlab.data import InputError
from seqlab.datasets import _address_names as names
from seqlab.datasets import make_addresses


@pytest.fixture(scope="module")
def addresses():
    return make_addresses(1500, random_state=0)


def test_labels_are_valid_iob2(addresses):
    known = set(addresses.target_names)
    for tokens, labels in zip(addresses.data, addresses.target, strict=True):
        assert len(tokens) == len(labels) > 0
        previous = "O"
        for label in labels:
            assert label in known
            if label.startswith("I-"):
                assert previous[2:] == label[2:]
            previous = label
        assert all(isinstance(token, tuple) and len(token) == 1 and token[0] for token in tokens)
        assert labels[-1] != "O"


def test_every_label_occurs(addresses):
    seen = {label for labels in addresses.target for label in labels}
    assert seen == set(addresses.target_names)


def test_only_commas_are_outside(addresses):
    outside = {
        token
        for tokens, labels in zip(addresses.data, addresses.target, strict=True)
        for (token,), label in zip(tokens, labels, strict=True)
        if label == "O"
    }
    assert outside == {","}


def test_addresses_vary(addresses):
    assert len(set(addresses.text)) > 1490
    assert set(addresses.country) == {"us", "gb", "de", "fr", "ca", "au", "es", "it", "nl"}
    assert any(text.islower() for text in addresses.text)
    assert any(text.isupper() for text in addresses.text)
    assert any("," not in text for text in addresses.text)
    streets = sum(len(getattr(names, name)) for name in dir(names) if name.endswith("_STREETS"))
    towns = sum(len(getattr(names, name)) for name in dir(names) if name.endswith("_TOWNS"))
    assert streets >= 150
    assert towns >= 150


def test_addresses_without_noise_are_well_formed():
    data = make_addresses(300, countries=["us"], noise=0, random_state=1)
    for text, tokens, labels in zip(data.text, data.data, data.target, strict=True):
        assert not text.islower()
        city = labels.index("B-City")
        assert tokens[city - 1] == (",",)
        for (token,), label in zip(tokens, labels, strict=True):
            if label == "B-Postcode":
                assert re.fullmatch(r"\d{5}(-\d{4})?", token)


def test_text_consists_of_the_tokens(addresses):
    for text, tokens in zip(addresses.text, addresses.data, strict=True):
        assert text.replace(",", " ,").split() == [token for (token,) in tokens]


def test_equal_seeds_give_equal_addresses():
    one, two = (make_addresses(50, random_state=3, return_X_y=True) for _ in range(2))
    assert one == two
    assert one != make_addresses(50, random_state=4, return_X_y=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"countries": ["xx"]}, "unknown country 'xx'"),
        ({"countries": []}, "countries is empty"),
        ({"countries": "us"}, r"countries must be a list of codes, got 'us'; write \['us'\]"),
        ({"noise": 2}, "noise must be between"),
        ({"n": 0}, "n must be an integer of at least 1, got 0"),
        ({"n": -1}, "n must be an integer"),
        ({"n": "us"}, "n must be an integer"),
        ({"n": 2.0}, "n must be an integer"),
    ],
)
def test_invalid_parameters(options, message):
    with pytest.raises(InputError, match=message):
        make_addresses(**{"n": 2, **options})


def test_shares_of_chosen_countries():
    codes = make_addresses(400, countries=["us", "gb"], random_state=0).country
    assert set(codes) == {"us", "gb"}
    assert np.mean(codes == "us") == pytest.approx(0.34 / 0.52, abs=0.08)
