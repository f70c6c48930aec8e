//===- Picture.cpp - What a mask keeps, drawn -----------------------------===//
#include "attn/Target/Picture.h"

#include "TileMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::ArrayRef;
using llvm::formatv;
using llvm::StringRef;

namespace attn {
namespace {

// Blue, orange and grey stay apart for every kind of colour vision, and by lightness alone.
constexpr const char *kColours[kNumShades] = {"#f3f3f0", "#fddca4", "#fab95c", "#ef8f2c", "#c8600f", "#1d4f7c"};
constexpr const char *kInk = "#222", *kSoft = "#666", *kFrame = "#999";

constexpr double kWidth = 760, kMargin = 32, kAxis = 74, kTop = 40; // room for ticks and a name
constexpr int64_t kMostHeads = 4;
constexpr size_t kLineLength = 92; // characters of a line of text

std::string number(double value) { return formatv("{0:f1}", value).str(); }

/// "1,048,576"
std::string grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (int64_t at = int64_t(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}

/// "12.5 %": three digits.
std::string percent(double part) {
  const char *format = part >= 0.1 ? "%.1f %%" : part >= 0.001 ? "%.2f %%" : "%.2g %%";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(part == 0 || part == 1 ? "%.0f %%" : format, 100 * part);
  return text;
}

/// Lines of words; one too long to fit stands alone.
std::vector<std::string> wrap(StringRef text, size_t most) {
  std::vector<std::string> lines(1);
  llvm::SmallVector<StringRef> words;
  text.split(words, ' ', -1, false);
  for (StringRef word : words) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > most)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word.str();
  }
  if (lines.size() > 4) {
    lines.resize(4);
    lines.back() += " ...";
  }
  return lines;
}

class Painter {
public:
  void text(double x, double y, StringRef words, double size, const char *colour, StringRef more = "") {
    body() << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\" font-size=\"" << number(size) << "\" fill=\""
           << colour << "\"" << more << ">";
    llvm::printHTMLEscaped(words, os);
    os << "</text>\n";
  }
  void box(double x, double y, double width, double height, const char *fill, const char *stroke = "none") {
    body() << "<rect x=\"" << number(x) << "\" y=\"" << number(y) << "\" width=\"" << number(width) << "\" height=\""
           << number(height) << "\" fill=\"" << fill << "\" stroke=\"" << stroke << "\"/>\n";
  }
  void line(double x0, double y0, double x1, double y1) {
    body() << "<path d=\"M" << number(x0) << " " << number(y0) << "L" << number(x1) << " " << number(y1)
           << "\" stroke=\"" << kFrame << "\"/>\n";
  }
  llvm::raw_ostream &body() { return os; }

  void finish(double height, StringRef title, llvm::raw_ostream &to) const {
    to << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
                  "font-family=\"Inter, 'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif\" fill=\"none\">\n<title>",
                  int64_t(kWidth), int64_t(height));
    llvm::printHTMLEscaped(title, to);
    to << formatv("</title>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n", int64_t(kWidth), int64_t(height))
       << content << "</svg>\n";
  }

private:
  std::string content;
  llvm::raw_string_ostream os{content};
};

/// Distance of ticks: at most `most` of them, at round numbers, which are powers of two where there are many tokens.
int64_t chooseStep(int64_t extent, int64_t most) {
  if (extent > 96)
    return llvm::PowerOf2Ceil(llvm::divideCeil(extent, most));
  for (int64_t step : {1, 2, 5, 10})
    if (extent <= step * most)
      return step;
  return 20;
}

/// Ticks from 0 to `last` on an axis of so many pixels, whose labels are to be `distance` pixels apart. A round number
/// too near to the last gives way to it.
llvm::SmallVector<int64_t> chooseTicks(int64_t last, double pixels, double distance) {
  llvm::SmallVector<int64_t> ticks;
  int64_t step = chooseStep(last, std::clamp<int64_t>(pixels / distance, 1, 8));
  double room = distance * last / pixels; // in tokens
  for (int64_t tick = 0; tick < last && (tick == 0 || last - tick >= room); tick += step)
    ticks.push_back(tick);
  ticks.push_back(last);
  return ticks;
}

/// One map with its axes, in a field of a given size.
class Panel {
public:
  Panel(Painter &painter, const TileMap &map, const Extents &extents, double field)
      : painter(painter), map(map), extents(extents) {
    double longest = std::max<double>(std::max(extents.queries, extents.keys), 1);
    width = std::max(field * extents.keys / longest, 24.0);
    height = std::max(field * extents.queries / longest, 24.0);
  }
  double getHeight() const { return kTop + height; }

  void draw(double left, double top) {
    x = left + kAxis;
    y = top + kTop;
    drawBlocks();
    drawTicks();
    painter.text(x + width / 2, top + 12, "keys", 13, kInk, " text-anchor=\"middle\"");
    std::string turned =
        formatv(" text-anchor=\"middle\" transform=\"rotate(-90 {0} {1})\"", number(left + 10), number(y + height / 2));
    painter.text(left + 10, y + height / 2, "queries", 13, kInk, turned);
  }

private:
  void drawBlocks() {
    painter.box(x, y, width, height, kColours[kEmpty]);
    // Blocks at the end may be smaller; they are drawn as large as the others and cut off.
    double across = width * map.keyTokens / std::max<double>(extents.keys, 1);
    double down = height * map.queryTokens / std::max<double>(extents.queries, 1);
    llvm::raw_ostream &os = painter.body();
    os << formatv("<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\"><g transform=\"scale({4:f4} {5:f4})\" "
                  "shape-rendering=\"crispEdges\">\n",
                  number(x), number(y), number(width), number(height), across, down);
    for (int shade = kQuarter; shade < kNumShades; ++shade)
      drawShade(Shade(shade));
    os << "</g></svg>\n";
    if (map.isElements())
      drawGrid();
    painter.box(x, y, width, height, "none", kFrame);
  }

  void drawShade(Shade shade) {
    std::vector<TileMap::Rectangle> rectangles = map.merge(shade);
    if (rectangles.empty())
      return;
    llvm::raw_ostream &os = painter.body();
    os << "<path fill=\"" << kColours[shade] << "\" d=\"";
    for (const TileMap::Rectangle &r : rectangles)
      os << "M" << r.column << " " << r.row << "h" << r.columns << "v" << r.rows << "h-" << r.columns << "z";
    os << "\"/>\n";
  }

  void drawGrid() {
    llvm::raw_ostream &os = painter.body();
    os << "<path stroke=\"#fff\" stroke-width=\"" << (std::max(map.rows, map.columns) > 48 ? "0.7" : "1.2")
       << "\" d=\"";
    for (int64_t row = 1; row < map.rows; ++row)
      os << "M" << number(x) << " " << number(y + height * row / map.rows) << "h" << number(width);
    for (int64_t column = 1; column < map.columns; ++column)
      os << "M" << number(x + width * column / map.columns) << " " << number(y) << "v" << number(height);
    os << "\"/>\n";
  }

  // At single pairs a tick stands in the middle of its row or column and the last one is the last token; else ticks
  // stand at boundaries and the last one is the number of tokens.
  void drawTicks() {
    double half = map.isElements() ? 0.5 : 0;
    auto lastOf = [&](int64_t extent) { return std::max<int64_t>(map.isElements() ? extent - 1 : extent, 0); };
    for (int64_t key : chooseTicks(lastOf(extents.keys), width, 64)) {
      double at = x + width * (key + half) / std::max<double>(extents.keys, 1);
      painter.line(at, y - 5, at, y);
      painter.text(at, y - 9, grouped(key), 11, kSoft, " text-anchor=\"middle\"");
    }
    for (int64_t query : chooseTicks(lastOf(extents.queries), height, 20)) {
      double at = y + height * (query + half) / std::max<double>(extents.queries, 1);
      painter.line(x - 5, at, x, at);
      painter.text(x - 8, at + 4, grouped(query), 11, kSoft, " text-anchor=\"end\"");
    }
  }

  Painter &painter;
  const TileMap &map;
  const Extents &extents;
  double width, height, x = 0, y = 0;
};

/// Title, panels, legend and notes of one mask, drawn from `y` on, which moves down.
class Section {
public:
  Section(Painter &painter, const MaskPicture &mask, double &y)
      : painter(painter), mask(mask), extents(mask.evaluator->getExtents()), y(y) {
    heads = mask.evaluator->getDependence().head ? std::min(kMostHeads, extents.heads) : 1;
    for (int64_t head = 0; head < heads; ++head)
      maps.push_back(std::make_unique<TileMap>(*mask.evaluator, 0, head));
  }

  void draw() {
    drawTitle();
    drawPanels();
    drawLegend();
    for (const std::string &note : mask.notes)
      for (const std::string &line : wrap(note, kLineLength + 10))
        painter.text(kMargin, y += 18, line, 12, kSoft);
    y += kMargin;
  }

private:
  void drawTitle() {
    painter.text(kMargin, y += 40, mask.title, 21, kInk, " font-weight=\"600\"");
    y += 4;
    for (const std::string &line : wrap(mask.mask.empty() ? "no mask" : mask.mask, kLineLength))
      painter.text(kMargin, y += 18, line, 13, kInk);
    double kept = 0, pairs = double(extents.queries) * extents.keys * heads;
    for (const auto &map : maps)
      kept += map->kept;
    std::string summary = formatv("{0} queries, {1} keys: {2}{3} of the pairs attend", grouped(extents.queries),
                                  grouped(extents.keys), isExact() ? "" : "about ", percent(pairs ? kept / pairs : 0));
    painter.text(kMargin, y += 22, summary, 13, kSoft);
    y += 18;
  }

  bool isExact() const {
    return llvm::all_of(maps, [](const auto &map) { return map->isExact; });
  }

  void drawPanels() {
    int64_t perRow = heads > 1 ? 2 : 1;
    double space = (kWidth - 2 * kMargin) / perRow, field = space - kAxis - 8;
    for (int64_t head = 0; head < heads; head += perRow) {
      if (heads > 1)
        y += 22;
      double height = 0;
      for (int64_t at = head; at < std::min(heads, head + perRow); ++at) {
        double left = kMargin + space * (at - head);
        Panel panel(painter, *maps[at], extents, field);
        panel.draw(left, y);
        height = std::max(height, panel.getHeight());
        if (heads > 1)
          painter.text(left + kAxis, y - 10, "head " + std::to_string(at), 13, kInk, " font-weight=\"600\"");
      }
      y += height + 16;
    }
  }

  void drawLegend() {
    std::array<int64_t, kNumShades> counts = {};
    int64_t all = 0;
    for (const auto &map : maps)
      for (int shade = 0; shade < kNumShades; ++shade) {
        counts[shade] += map->counts[shade];
        all += map->counts[shade];
      }
    y += 8;
    if (maps[0]->isElements()) {
      entry({kColours[kFull]}, "attends", counts[kFull], all, "pairs");
      entry({kColours[kEmpty]}, "masked", counts[kEmpty], all, "pairs");
      return;
    }
    int64_t partial = all - counts[kEmpty] - counts[kFull];
    std::string size = formatv("One block is {0} x {1} pairs.", maps[0]->queryTokens, maps[0]->keyTokens);
    entry({kColours[kFull]}, "full: all pairs attend", counts[kFull], all, "blocks");
    entry({kColours[kQuarter], kColours[kHalf], kColours[kThreeQuarters], kColours[kMost]},
          "partial: up to 1/4, 1/2, 3/4, almost all attend", partial, all, "blocks");
    entry({kColours[kEmpty]}, "empty: no pair attends", counts[kEmpty], all, "blocks");
    painter.text(kMargin, y += 20, size, 12, kSoft);
  }

  void entry(ArrayRef<const char *> colours, StringRef words, int64_t count, int64_t all, StringRef unit) {
    constexpr double swatch = 14, room = 4 * swatch;
    y += 22;
    for (auto [n, colour] : llvm::enumerate(colours))
      painter.box(kMargin + n * swatch + 0.5, y - 11.5, swatch, swatch, colour, kFrame);
    painter.text(kMargin + room + 12, y, words, 13, kInk);
    std::string figure = formatv("{0} {1}, {2}", grouped(count), unit, percent(all ? double(count) / all : 0));
    painter.text(kWidth - kMargin, y, figure, 13, kInk, " text-anchor=\"end\"");
  }

  Painter &painter;
  const MaskPicture &mask;
  const Extents &extents;
  double &y;
  int64_t heads;
  std::vector<std::unique_ptr<TileMap>> maps;
};

} // namespace

void drawMasks(ArrayRef<MaskPicture> masks, llvm::raw_ostream &os) {
  Painter painter;
  double y = 0;
  for (const MaskPicture &mask : masks)
    Section(painter, mask, y).draw();
  painter.finish(y, masks.empty() ? "" : masks.front().title, os);
}

} // namespace attn
