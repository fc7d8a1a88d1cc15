"""Whether people can read and reach what stands on a page: contrast as it is painted, and the rules of axe-core."""

from __future__ import annotations

import json
import time
from pathlib import Path

from playwright.sync_api import Locator
from support import until

_AXE = Path(__file__).parents[2] / "widgets" / "node_modules" / "axe-core" / "axe.min.js"


def contrast(element: Locator) -> float:
    """Return the contrast of an element's text with what lies behind it, 1 to 21, as the browser paints them."""
    return float(
        element.evaluate(
            """(element) => {
                const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
                const paint = (colour, alpha) => {
                    canvas.globalAlpha = alpha;
                    canvas.fillStyle = colour;
                    canvas.fillRect(0, 0, 1, 1);
                };
                const part = (c) => (c / 255 <= .04045 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4);
                const light = () => {
                    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
                    return .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
                };
                const behind = [];
                let opacity = 1;
                for (let node = element; node; node = node.parentElement) {
                    const style = getComputedStyle(node);
                    behind.unshift(style.backgroundColor);
                    opacity *= Number(style.opacity);
                }
                paint('white', 1);
                for (const colour of behind) paint(colour, 1);
                const ground = light();
                paint(getComputedStyle(element).color, opacity);
                const [low, high] = [ground, light()].sort((a, b) => a - b);
                return (high + .05) / (low + .05);
            }"""
        )
    )


def violations(view: Locator) -> list[str]:
    """Return what axe-core has against a view, each rule with the elements that break it."""
    if view.evaluate("() => typeof axe") == "undefined":
        view.evaluate("(_, source) => { (0, eval)(source); }", _AXE.read_text(encoding="utf-8"))
    found = view.evaluate(
        """async (element) => {
            const { violations } = await axe.run(element, { resultTypes: ['violations'] });
            return violations.map((rule) => [rule.id, rule.nodes.map((node) => node.html.slice(0, 200))]);
        }"""
    )
    return [f"{rule}: {json.dumps(nodes)}" for rule, nodes in found]


def can_be_read(view: Locator, *parts: str) -> None:
    """Wait until a view breaks no rule and each part has the contrast of WCAG AA: a theme comes in bits."""
    for part in parts:
        until(lambda part=part: contrast(view.locator(part).first) >= 4.5, 5, what=f"a contrast of 4.5 of {part}")
    end = time.monotonic() + 5
    while found := violations(view):
        assert time.monotonic() < end, "\n".join(found)
