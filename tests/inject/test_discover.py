from __future__ import annotations

import pytest
from torch import nn

from sacm import ArgumentError, Site, SiteLayout
from sacm.inject.discover import (
    assign_layouts,
    check_matches,
    collect_names,
    discover,
    match_modules,
    matches,
)


def test_dropouts_are_found_in_definition_order_with_their_reasons() -> None:
    shared = nn.Dropout(0.1)
    model = nn.ModuleDict(
        {
            "lstm": nn.LSTM(2, 2, num_layers=2, dropout=0.1),
            "plain_lstm": nn.LSTM(2, 2),
            "a": shared,
            "b": nn.Sequential(nn.Linear(2, 2), nn.Dropout2d(0.2)),
            "c": shared,
            "alpha": nn.FeatureAlphaDropout(),
        }
    )
    found = {site.name: site for site in discover(model, skip=["b.*"]).values()}
    assert list(found) == ["lstm", "a", "b.1", "alpha"]
    assert [site.adaptive for site in found.values()] == [False, True, False, False]
    assert found["a"].reason == "tied: also c"
    assert found["b.1"].reason.startswith("skipped on request")
    assert "recurrent kernel" in found["lstm"].reason


def test_layers_that_drop_by_name_are_listed() -> None:
    class DropPath(nn.Module):
        pass

    model = nn.Sequential(nn.Linear(2, 2), DropPath())
    (site,) = discover(model, skip=[]).values()
    assert (site.name, site.adaptive) == ("1", False)
    assert "not covered" in site.reason


def test_a_tied_module_has_all_its_names() -> None:
    shared = nn.Linear(2, 2)
    names = collect_names(nn.Sequential(shared, shared))
    assert names[shared] == ["0", "1"]
    assert match_modules(names, ["1"], "skip") == [shared]
    with pytest.raises(ArgumentError, match="skip: no module of the model matches '2'"):
        match_modules(names, ["0", "2"], "skip")


def test_brackets_in_the_name_of_a_site_may_be_meant_literally() -> None:
    assert matches("a:dropout[1]", "a:dropout[1]")
    assert matches("a:dropout[1]", "a:*")
    assert matches("a1", "a[12]")
    assert not matches("a:dropout", "a:dropout[1]")


def test_stated_layouts_go_to_the_sites_that_they_name() -> None:
    sites = [Site("x.a", "Dropout"), Site("x.b", "Dropout"), Site("y", "Dropout")]
    assign_layouts(sites, {"x.*": SiteLayout(1)})
    assert [site.stated for site in sites] == [SiteLayout(1), SiteLayout(1), None]
    with pytest.raises(ArgumentError, match=r"matches 'z'; sites: x\.a, x\.b, y"):
        check_matches(sites, ["z"], "site_layouts")
