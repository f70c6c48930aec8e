"""Plots in SVG, without a library."""

import html
import math
from collections import namedtuple

Curve = namedtuple("Curve", "name points")  # points: (x, y), both above 0

Bar = namedtuple("Bar", "group name value")  # value above 0

COLOURS = ("#1d4f7c", "#c8600f", "#3c8d40", "#8a4fa3", "#b8312f", "#6f7d2c", "#2a9d9d", "#555555", "#d79a00", "#a0522d")
WIDTH, HEIGHT = 960, 620
LEFT, RIGHT, TOP, BOTTOM = 80, 290, 50, 60


def decades(low, high):
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def spread(wanted, gap):
    """Places for labels near the wanted ones, `gap` apart, in the same order, above the lower border."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places, last = list(wanted), -math.inf
    for i in order:
        last = places[i] = max(wanted[i], last + gap)
    limit = HEIGHT - BOTTOM
    for i in reversed(order):
        places[i] = min(places[i], limit)
        limit = places[i] - gap
    return places


def log_log_plot(curves, x_title, y_title, title):
    """Curves over logarithmic axes, each with its name at its end."""
    xs = [x for curve in curves for x, _ in curve.points]
    ys = [y for curve in curves for _, y in curve.points]
    rows = decades(min(ys), max(ys))
    left, right = math.log2(min(xs)), math.log2(max(xs)) or 1
    bottom, top = rows[0], rows[-1]

    def place(x, y):
        return (LEFT + (math.log2(x) - left) / max(right - left, 1e-9) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - (math.log10(y) - bottom) / max(top - bottom, 1) * (HEIGHT - TOP - BOTTOM))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="Inter, \'DejaVu Sans\', Arial, sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="26" font-size="16" fill="#222">{html.escape(title)}</text>']

    def text(x, y, words, anchor="middle", colour="#666", more=""):
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{more}>{html.escape(words)}</text>')

    for row in rows:
        y = place(min(xs), 10.0 ** row)[1]
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        text(LEFT - 8, y + 4, f"{10.0 ** row:g}", "end")
    for power in range(round(left), round(right) + 1, 2):
        x = place(2 ** power, 10.0 ** bottom)[0]
        out.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eee"/>')
        text(x, HEIGHT - BOTTOM + 18, f"{2 ** power:,}")
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, x_title)
    text(20, HEIGHT / 2, y_title, more=f' transform="rotate(-90 20 {HEIGHT / 2:.0f})"')
    ends = [place(*curve.points[-1]) for curve in curves]
    for i, (curve, end, label) in enumerate(zip(curves, ends, spread([y for _, y in ends], 15))):
        colour = COLOURS[i % len(COLOURS)]
        dash = ' stroke-dasharray="5 3"' if i >= len(COLOURS) else ""
        path = "L".join("{:.1f} {:.1f}".format(*place(x, y)) for x, y in curve.points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        out.append(f'<path d="M{end[0]:.1f} {end[1]:.1f}L{WIDTH - RIGHT + 24} {label:.1f}" stroke="{colour}" stroke-width="0.7" '
                   'fill="none" opacity="0.6"/>')
        text(WIDTH - RIGHT + 28, label + 4, curve.name, "start", colour)
    return "\n".join(out + ["</svg>", ""])


def bar_chart(bars, title):
    """Bars over a logarithmic axis, by group, with a line at 1; a colour for each name."""
    groups = list(dict.fromkeys(bar.group for bar in bars))
    names = list(dict.fromkeys(bar.name for bar in bars))
    thick, gap, left = 9, 12, 190
    height = TOP + sum(thick * sum(b.group == g for b in bars) + gap for g in groups) + BOTTOM
    low = math.floor(math.log2(min(1, *(b.value for b in bars))))
    high = math.ceil(math.log2(max(1, *(b.value for b in bars))))
    place = lambda value: left + (math.log2(value) - low) / max(high - low, 1) * (WIDTH - left - 190)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
           'font-family="Inter, \'DejaVu Sans\', Arial, sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="20" y="26" font-size="16" fill="#222">{html.escape(title)}</text>']
    for power in range(low, high + 1):
        x = place(2.0 ** power)
        out.append(f'<path d="M{x:.1f} {TOP - 8}V{height - BOTTOM}" stroke="{"#444" if power == 0 else "#ddd"}"/>')
        out.append(f'<text x="{x:.1f}" y="{height - BOTTOM + 18}" text-anchor="middle" fill="#666">{2.0 ** power:g}</text>')
    y = TOP
    for group in groups:
        own = [b for b in bars if b.group == group]
        out.append(f'<text x="{left - 10}" y="{y + thick * len(own) / 2 + 4:.1f}" text-anchor="end" fill="#222">{html.escape(group)}</text>')
        for bar in own:
            a, b = sorted((place(1), place(bar.value)))
            colour = COLOURS[names.index(bar.name) % len(COLOURS)]
            out.append(f'<rect x="{a:.1f}" y="{y}" width="{max(b - a, 1):.1f}" height="{thick - 1}" fill="{colour}"/>')
            out.append(f'<text x="{b + 4:.1f}" y="{y + thick - 1}" font-size="9" fill="#444">{bar.value:.3g}</text>')
            y += thick
        y += gap
    for i, name in enumerate(names):
        at = TOP + 18 * i
        out.append(f'<rect x="{WIDTH - 170}" y="{at}" width="12" height="12" fill="{COLOURS[i % len(COLOURS)]}"/>')
        out.append(f'<text x="{WIDTH - 152}" y="{at + 11}" fill="#222">{html.escape(name)}</text>')
    return "\n".join(out + ["</svg>", ""])
