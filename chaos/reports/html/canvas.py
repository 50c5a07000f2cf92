"""The parts that all plots of report.html share: time axis, labelled bands for faults, crosshair, highlight.

Bokeh draws the plots: its runtime (1.3 MB) fits into the page, and zoom and crosshair are linked across plots. Python
gives each glyph a tag (`held`, `over`, `fault` …) and no colour. page.js colours glyphs by tag, for light and dark
mode.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bokeh.models import (
    BoxAnnotation,
    BoxZoomTool,
    ColumnDataSource,
    CrosshairTool,
    CustomJS,
    HoverTool,
    Legend,
    LegendItem,
    PanTool,
    Range1d,
    Span,
    WheelZoomTool,
)
from bokeh.plotting import figure

LEFT_PX, RIGHT_PX = 172, 18
LABELS_MAX = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A fault, drawn as a vertical band across all plots."""

    fault_id: str
    title: str
    brief: str
    start_ms: float
    end_ms: float
    is_likely: bool = False
    """Whether it was inferred from logs and is not certain."""
    nodes: Sequence[str] = ()
    """The nodes of a fault that is likely, but whose form is not known."""


@dataclass(slots=True, kw_only=True)
class Canvas:
    """The frame of every plot. The time axis shows seconds of RocketMQ time since the scenario's timeline began."""

    start_ms: float
    end_ms: float
    bands: Sequence[Band] = ()
    x_range: Any = field(init=False)
    crosshair: Any = field(init=False)

    def __post_init__(self) -> None:
        pad_ms = (self.end_ms - self.start_ms) * 0.01
        start_s, end_s = (self.start_ms - pad_ms) / 1000, (self.end_ms + pad_ms) / 1000
        self.x_range = Range1d(start_s, end_s, bounds=(start_s, end_s), min_interval=0.002, name="time")
        self.crosshair = Span(dimension="height", line_width=1, line_dash="dotted", tags=["line:crosshair"])

    def plot(self, section: str, height: int, *, y_range: Any = None, y_axis_type: str = "linear") -> Any:
        """Return an empty plot. Dragging zooms, and so does the mouse wheel with Ctrl; the wheel alone scrolls the
        page."""
        drag = BoxZoomTool(dimensions="width", name="zoom")
        tools = [
            drag,
            PanTool(dimensions="width", name="pan"),
            WheelZoomTool(dimensions="width", modifiers={"ctrl": True}),
            CrosshairTool(overlay=self.crosshair),
        ]
        plot = figure(
            name=f"plot-{section}",
            height=height,
            sizing_mode="stretch_width",
            x_range=self.x_range,
            tools=tools,
            toolbar_location=None,
            y_axis_type=y_axis_type,
            min_border_left=LEFT_PX,
            min_border_right=RIGHT_PX,
            min_border_top=4,
            min_border_bottom=4,
            background_fill_alpha=0,
            border_fill_alpha=0,
            outline_line_alpha=0,
            lod_threshold=None,
            **({"y_range": y_range} if y_range is not None else {}),
        )
        plot.toolbar.active_drag = drag
        plot.toolbar.active_scroll = next(tool for tool in tools if isinstance(tool, WheelZoomTool))
        plot.xaxis.axis_label = None
        plot.xaxis.formatter.use_scientific = False
        plot.xgrid.tags = plot.ygrid.tags = ["grid"]
        self._draw_bands(plot)
        plot.add_layout(
            BoxAnnotation(name=f"mark-{section}", visible=False, level="overlay", line_width=2, tags=["highlight"])
        )
        return plot

    def _draw_bands(self, plot: Any) -> None:
        for band in self.bands:
            plot.add_layout(
                BoxAnnotation(
                    left=band.start_ms / 1000,
                    right=min(band.end_ms, self.end_ms) / 1000,
                    level="underlay",
                    line_dash="dashed",
                    line_width=1,
                    tags=["band"],
                )
            )

    def label_bands(self, plot: Any, y: float) -> None:
        """Write the faults' names into the plot at height `y`. A name that would overlap an earlier name is counted
        there: `ns-0 killed, and 1 more`."""
        shown: list[list[Band]] = []
        for band in self.bands:
            apart_ms = (self.end_ms - self.start_ms) / 8
            if near := next((of for of in shown if abs(band.start_ms - of[0].start_ms) <= apart_ms), None):
                near.append(band)
            elif len(shown) < LABELS_MAX:
                shown.append([band])
        texts = [of[0].brief + (f", and {len(of) - 1} more" if len(of) > 1 else "") for of in shown]
        source = ColumnDataSource({"x": [of[0].start_ms / 1000 for of in shown], "y": [y] * len(shown), "text": texts})
        plot.text(
            source=source, text_font_size="11px", text_baseline="top", x_offset=4, y_offset=2, tags=["text:fault"]
        )


def source_of(rows: Sequence[tuple[Any, ...]], *columns: str) -> Any:
    return ColumnDataSource({name: [row[at] for row in rows] for at, name in enumerate(columns)})


def hover(plot: Any, renderers: Sequence[Any], columns: Sequence[tuple[str, str]] = (), **options: Any) -> None:
    """Show a tooltip for the glyph under the pointer: its `text`, or `columns` as (name, value) pairs. page.js draws
    one tooltip for all glyphs, because Bokeh's own tooltips overlap."""
    if renderers:
        told = CustomJS(args={"lines": [list(pair) for pair in columns]}, code="nemesrvHover(cb_data, lines)")
        plot.add_tools(HoverTool(renderers=list(renderers), tooltips=None, callback=told, **options))


def legend(plot: Any, items: Sequence[tuple[str, Sequence[Any]]]) -> None:
    """Add a legend above the plot. A click on a legend entry hides the entry's glyphs."""
    entries = [LegendItem(label=label, renderers=list(renderers)) for label, renderers in items if renderers]
    if entries:
        plot.add_layout(
            Legend(
                items=entries,
                orientation="horizontal",
                click_policy="hide",
                location="top_left",
                border_line_alpha=0,
                background_fill_alpha=0,
                label_text_font_size="11px",
                label_standoff=5,
                glyph_height=18,
                glyph_width=18,
                spacing=10,
                padding=0,
                margin=4,
                ncols="auto",
            ),
            "above",
        )
