// The planner against brute force: random masks, lattices, tile sizes and odd extents.

#include "attn/Runtime/Attn.h"
#include "attn/Runtime/Plan.h"

#include "gtest/gtest.h"

#include <chrono>
#include <functional>
#include <iostream>
#include <random>

namespace {

using Keep = std::function<bool(int64_t b, int64_t h, int64_t i, int64_t j)>;

struct Draw {
  AttnKernel kernel = {};
  AttnPlanShape shape = {};
  Keep keep;
  bool exact = true; ///< else classification answers PARTIAL now and then, as interval arithmetic does
  int64_t calls = 0;

  int64_t step() const { return kernel.reindex == ATTN_RESIDUE ? kernel.reindex_size : 1; }

  /// What the pairs of a rectangle of positions say together.
  int32_t classify(int64_t b, int64_t h, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) const {
    bool any = false, all = true;
    for (int64_t i = iLo; i <= iHi; i += step())
      for (int64_t j = jLo; j <= jHi && (!any || all); j += step())
        (keep(b, h, i, j) ? any : all) = keep(b, h, i, j);
    return all ? ATTN_FULL : any ? ATTN_PARTIAL : ATTN_EMPTY;
  }
};

int32_t classifyDraw(void *context, int64_t b, int64_t h, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) {
  Draw *draw = static_cast<Draw *>(context);
  ++draw->calls;
  EXPECT_LE(iLo, iHi);
  EXPECT_LE(jLo, jHi);
  if (!draw->exact && (iLo * 31 + iHi * 17 + jLo * 7 + jHi) % 5 == 0)
    return ATTN_PARTIAL;
  return draw->classify(b, h, iLo, iHi, jLo, jHi);
}

int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t floorMod(int64_t a, int64_t b) { return a - floorDiv(a, b) * b; }

using Random = std::mt19937;
int64_t pick(Random &random, int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); }

Keep drawMask(Random &random) {
  int64_t left = pick(random, -3, 60), right = pick(random, -3, 60), size = pick(random, 1, 40),
          seed = pick(random, 0, 99);
  switch (pick(random, 0, 6)) {
  case 0:
    return [=](int64_t, int64_t, int64_t i, int64_t j) { return i - left <= j && j <= i + right; };
  case 1:
    return [=](int64_t, int64_t, int64_t i, int64_t j) { return j <= i && i - j <= left; };
  case 2: // documents, another length for every batch
    return [=](int64_t b, int64_t, int64_t i, int64_t j) { return floorDiv(i, size + b) == floorDiv(j, size + b); };
  case 3: // a band and global tokens that differ by head
    return [=](int64_t, int64_t h, int64_t i, int64_t j) { return i == h || j == h * 7 || (j <= i && i - j < left); };
  case 4: // a dense random table of blocks
    return [=](int64_t b, int64_t h, int64_t i, int64_t j) {
      return ((floorDiv(i, size) * 7919 + floorDiv(j, size) * 104729 + b * 13 + h * 17 + seed) >> 3) % 3 == 0;
    };
  case 5:
    return [](int64_t, int64_t, int64_t, int64_t) { return true; };
  default:
    return [=](int64_t, int64_t, int64_t i, int64_t j) { return (i * 31 + j * 37 + seed) % 11 < 4; };
  }
}

Draw drawProblem(Random &random) {
  Draw draw;
  AttnKernel &kernel = draw.kernel;
  const int64_t tiles[] = {1, 3, 16, 48}, granules[] = {1, 4, 16};
  kernel.query_tile = tiles[pick(random, 0, 3)];
  kernel.key_granule = granules[pick(random, 0, 2)];
  kernel.has_mask = pick(random, 0, 9) > 0;
  kernel.reindex = pick(random, 0, 2);
  kernel.reindex_size = pick(random, 1, 50);
  kernel.align = pick(random, 0, 1);
  draw.shape = {pick(random, 0, 2), pick(random, 1, 2), pick(random, 0, 110), pick(random, 0, 110), pick(random, 0, 1)};
  kernel.depends_batch = kernel.depends_head = 1;
  draw.keep = drawMask(random);
  draw.exact = pick(random, 0, 3) > 0;
  return draw;
}

/// Rows of class `c` in terms of positions, by the definition in Abi.h; checks AttnClassRows against it.
void checkClasses(const Draw &draw) {
  int64_t classes = attn_class_count(&draw.kernel, &draw.shape);
  std::vector<int64_t> owner(draw.shape.num_queries, -1);
  int64_t previousFirst = -1;
  auto classOf = [&](int64_t position) {
    if (draw.kernel.reindex == ATTN_RESIDUE)
      return floorMod(position, draw.kernel.reindex_size);
    return draw.kernel.reindex == ATTN_BLOCK ? floorDiv(position, draw.kernel.reindex_size) : 0;
  };
  for (int64_t c = 0; c < classes; ++c) {
    AttnClassRows rows = attn_class_rows(&draw.kernel, &draw.shape, c);
    ASSERT_GT(rows.query_count, 0);
    ASSERT_GT(rows.query_token, previousFirst);
    previousFirst = rows.query_token;
    ASSERT_EQ(rows.query_offset, draw.kernel.align ? draw.shape.num_keys - draw.shape.num_queries : 0);
    int64_t name = classOf(rows.query_token + rows.query_offset);
    for (int64_t r = 0; r < rows.query_count; ++r) {
      int64_t token = rows.query_token + r * rows.query_step;
      ASSERT_LT(token, draw.shape.num_queries);
      ASSERT_EQ(owner[token], -1);
      ASSERT_EQ(classOf(token + rows.query_offset), name);
      owner[token] = c;
    }
    int64_t keys = 0;
    for (int64_t j = 0; j < draw.shape.num_keys; ++j)
      if (classOf(j) == name)
        ASSERT_EQ(j, rows.key_token + keys++ * rows.key_step);
    ASSERT_EQ(keys, rows.key_count);
  }
  for (int64_t c : owner)
    ASSERT_GE(c, 0);
}

/// Every (query tile, key granule) cell of one tile: covered as its pairs ask for.
void checkTile(const Draw &draw, const AttnPlan &plan, int64_t b, int64_t h, int64_t c, int64_t tile) {
  AttnClassRows rows = attn_class_rows(&draw.kernel, &draw.shape, c);
  int64_t entry = ((b * plan.heads + h) * plan.classes + c) * plan.tiles + tile;
  int64_t run = plan.offsets[entry], end = plan.offsets[entry + 1], granule = draw.kernel.key_granule;
  int64_t row = tile * draw.kernel.query_tile, rowEnd = std::min(row + draw.kernel.query_tile, rows.query_count);
  if (row >= rows.query_count) {
    ASSERT_EQ(run, end);
    return;
  }
  for (int64_t r = run; r < end; ++r) {
    const AttnRun &it = plan.runs[r];
    ASSERT_LT(it.begin, it.end);
    ASSERT_EQ(it.begin % granule, 0);
    ASSERT_TRUE(it.end % granule == 0 || it.end == rows.key_count);
    ASSERT_TRUE(it.kind == ATTN_PARTIAL || it.kind == ATTN_FULL);
    if (r > run)
      ASSERT_TRUE(plan.runs[r - 1].end < it.begin ||
                  (plan.runs[r - 1].end == it.begin && plan.runs[r - 1].kind != it.kind));
  }
  int64_t i = rows.query_token + rows.query_offset;
  for (int64_t key = 0; key < rows.key_count; key += granule) {
    int64_t keyEnd = std::min(key + granule, rows.key_count);
    while (run < end && plan.runs[run].end <= key)
      ++run;
    int32_t kind = run < end && plan.runs[run].begin <= key ? plan.runs[run].kind : ATTN_EMPTY;
    int32_t truth =
        !draw.kernel.has_mask
            ? ATTN_FULL
            : draw.classify(b, h, i + row * rows.query_step, i + (rowEnd - 1) * rows.query_step,
                            rows.key_token + key * rows.key_step, rows.key_token + (keyEnd - 1) * rows.key_step);
    if (draw.exact)
      ASSERT_EQ(kind, truth);
    else
      ASSERT_TRUE(kind == truth || kind == ATTN_PARTIAL);
  }
}

TEST(Planner, AgreesWithBruteForce) {
  Random random(1);
  for (int trial = 0; trial < 10000 && !HasFatalFailure(); ++trial) {
    SCOPED_TRACE(trial);
    Draw draw = drawProblem(random);
    checkClasses(draw);
    AttnPlan plan;
    ASSERT_EQ(attn_plan_build(&draw.kernel, &draw.shape, classifyDraw, &draw, &plan), ATTN_OK);
    if (!draw.kernel.has_mask)
      ASSERT_EQ(draw.calls, 0);
    ASSERT_EQ(plan.offsets[plan.batches * plan.heads * plan.classes * plan.tiles], plan.num_runs);
    for (int64_t b = 0; b < plan.batches; ++b)
      for (int64_t h = 0; h < plan.heads; ++h)
        for (int64_t c = 0; c < plan.classes; ++c) {
          ASSERT_GE(plan.tiles * draw.kernel.query_tile, attn_class_rows(&draw.kernel, &draw.shape, c).query_count);
          for (int64_t tile = 0; tile < plan.tiles; ++tile)
            checkTile(draw, plan, b, h, c, tile);
        }
    attn_plan_release(&plan);
    ASSERT_EQ(plan.offsets, nullptr);
  }
}

TEST(Planner, OnePlanRowWhereTheMaskDoesNotDependOnIt) {
  Draw draw;
  draw.kernel.query_tile = 8;
  draw.kernel.key_granule = 4;
  draw.kernel.has_mask = draw.kernel.depends_head = 1;
  draw.shape = {5, 3, 20, 20, 0};
  draw.keep = [](int64_t b, int64_t h, int64_t i, int64_t j) {
    EXPECT_EQ(b, 0);
    return j + h <= i;
  };
  AttnPlan plan;
  ASSERT_EQ(attn_plan_build(&draw.kernel, &draw.shape, classifyDraw, &draw, &plan), ATTN_OK);
  EXPECT_EQ(plan.batches, 1);
  EXPECT_EQ(plan.heads, 3);
  EXPECT_EQ(plan.tiles, 3);
  attn_plan_release(&plan);
}

TEST(Planner, NeighboursMergeIntoOneRun) {
  Draw draw; // every cell of a checkerboard is PARTIAL, so each tile has a single run
  draw.kernel.query_tile = 48;
  draw.kernel.key_granule = 16;
  draw.kernel.has_mask = 1;
  draw.shape = {1, 1, 1000, 1000, 0};
  draw.keep = [](int64_t, int64_t, int64_t i, int64_t j) { return (i + j) % 2 == 0; };
  AttnPlan plan;
  ASSERT_EQ(attn_plan_build(&draw.kernel, &draw.shape, classifyDraw, &draw, &plan), ATTN_OK);
  EXPECT_EQ(plan.num_runs, plan.tiles);
  attn_plan_release(&plan);
}

/// i - j of a rectangle against [lo, hi].
int32_t band(int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi, int64_t lo, int64_t hi) {
  if (iHi - jLo < lo || iLo - jHi > hi)
    return ATTN_EMPTY;
  return iLo - jHi >= lo && iHi - jLo <= hi ? ATTN_FULL : ATTN_PARTIAL;
}
int32_t window(void *calls, int64_t, int64_t, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) {
  ++*static_cast<int64_t *>(calls);
  return band(iLo, iHi, jLo, jHi, -256, 256);
}
int32_t longformer(void *calls, int64_t, int64_t, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) {
  int32_t global = std::max(band(iLo, iHi, 0, 0, 0, 0), band(jLo, jHi, 0, 0, 0, 0));
  return std::max(global, window(calls, 0, 0, iLo, iHi, jLo, jHi));
}
int32_t documents(void *calls, int64_t, int64_t, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) {
  ++*static_cast<int64_t *>(calls);
  int64_t a = iLo / 4000, b = iHi / 4000, c = jLo / 4000, d = jHi / 4000;
  int32_t same = b < c || d < a ? ATTN_EMPTY : a == b && c == d ? ATTN_FULL : ATTN_PARTIAL;
  return std::min(same, band(iLo, iHi, jLo, jHi, 0, INT64_MAX));
}

/// Cost follows the runs kept, not N squared; the times are printed for whoever wants to know.
TEST(Planner, LongSequencesAreCheap) {
  const std::pair<const char *, AttnPlanClassify> masks[] = {
      {"window", window}, {"longformer", longformer}, {"documents", documents}};
  AttnKernel kernel = {};
  kernel.query_tile = 48;
  kernel.key_granule = 16;
  kernel.has_mask = 1;
  AttnPlanShape shape = {1, 1, 262144, 262144, 0};
  for (auto [name, classify] : masks) {
    int64_t calls = 0;
    AttnPlan plan;
    auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(attn_plan_build(&kernel, &shape, classify, &calls, &plan), ATTN_OK);
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    int64_t bytes = plan.num_runs * sizeof(AttnRun) + (plan.tiles + 1) * sizeof(int64_t);
    std::cout << name << ": " << ms << " ms, " << calls << " readings, " << plan.num_runs << " runs, " << bytes
              << " bytes\n";
    EXPECT_LT(calls, 24 * plan.tiles);
    EXPECT_LT(bytes, 4 << 20);
    attn_plan_release(&plan);
  }
}

} // namespace
