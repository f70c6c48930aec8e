//===- Reformer.cpp - Reformer ----------------------------------------------===//
#include "Systems.h"
#include "attn/Support/Errors.h"

namespace attn::presets {

// A round of hashing is a group of its head. Queries and keys stand sorted by bucket, cut into chunks; a chunk looks
// back at the one before. Own keys count only where there is no other.
static constexpr char kReformer[] = R"(!z = tensor<?x?x?xf32>             // [batch, heads * rounds, tokens]
!i = tensor<?x?x?xi32>
${types}
func.func @reformer(%qk: !t, %v: !t, $hashed) -> !t {
  %k = attn.normalize_rows %qk eps(1.0e-6) : !t -> !t
$hash  %order, %places, %starts = attn.sort %buckets buckets($buckets) like %qk, %v : !i, !t, !t -> !i, !i, !i
$back  %qs = attn.gather_rows %qk[%order] : !t, !i -> !t
  %ks = attn.gather_rows %k[%$rows] : !t, !i -> !t
  %vs = attn.gather_rows %v[%$rows] : !t, !i -> !t
  %os, %zs = attn.attention %qs, %ks, %vs ${scaled}score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %query = tensor.extract %order[%b, %h, %i] : !i
    %key = tensor.extract %$rows[%b, %h, %j] : !i
    %own = arith.cmpi eq, %key, %query : i32
    %much = arith.constant 1.0e5 : f32
    %less = arith.subf %s, %much : f32
    %last = arith.select %own, %less, %s : f32
$counted    attn.yield %$score : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %near = $near
    %query = tensor.extract %order[%b, %h, %i] : !i
    %key = tensor.extract %$rows[%b, %h, %j] : !i
    %zero = arith.constant 0 : i32
    %there = arith.cmpi sge, %key, %zero : i32
    %keep0 = arith.andi %near, %there : i1
$past$same    attn.yield %keep$keep : i1
  } : !t, !t, !t -> !t, !z
  %o = attn.gather_rows %os[%places] : !t, !i -> !t
  %z = attn.gather_rows %zs[%places] : !z, !i -> !z
  %out = attn.merge %o, %z groups($rounds) : !t, !z -> !t
  return %out : !t
}
)";

static constexpr char kPast[] = R"(    %past = arith.cmpi sle, %key, %query : i32
    %keep1 = arith.andi %keep0, %past : i1
)";

static constexpr char kSame[] = R"(    %query_token = arith.index_cast %query : i32 to index
    %key_token = arith.index_cast %key : i32 to index
    %query_bucket = tensor.extract %buckets[%b, %h, %query_token] : !i
    %key_bucket = tensor.extract %buckets[%b, %h, %key_token] : !i
    %same = arith.cmpi eq, %query_bucket, %key_bucket : i32
    %keep2 = arith.andi %keep$before, %same : i1
)";

/// Less the logarithm of how many rounds have the pair.
static std::string countRounds(const Settings &set) {
  std::string text = set.fill(R"(    %rounds = arith.constant $rounds : index
    %chunk = arith.constant $chunk : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %query_token = arith.index_cast %query : i32 to index
    %key_token = arith.index_cast %key : i32 to index
    %head = arith.divui %h, %rounds : index
    %first = arith.muli %head, %rounds : index
    %count0 = arith.constant 0.0 : f32
)");
  for (int64_t round = 0; round < set.number("rounds"); ++round) {
    std::string same = set.isOn("same_bucket")
                           ? R"(    %query_bucket$r = tensor.extract %buckets[%b, %group$r, %query_token] : !i
    %key_bucket$r = tensor.extract %buckets[%b, %group$r, %key_token] : !i
    %same$r = arith.cmpi eq, %query_bucket$r, %key_bucket$r : i32
    %both$r = arith.andi %near$r, %same$r : i1
)"
                           : "    %both$r = arith.andi %near$r, %near$r : i1\n";
    text += set.fill(R"(    %round$r = arith.constant $r : index
    %group$r = arith.addi %first, %round$r : index
    %query_place$r = tensor.extract %places[%b, %group$r, %query_token] : !i
    %key_place$r = tensor.extract %places[%b, %group$r, %key_token] : !i
    %query_chunk$r = arith.divsi %query_place$r, %chunk : i32
    %key_chunk$r = arith.divsi %key_place$r, %chunk : i32
    %back$r = arith.subi %query_chunk$r, %key_chunk$r : i32
    %near$r = arith.cmpi ule, %back$r, %one : i32
)" + same + R"(    %have$r = arith.uitofp %both$r : i1 to f32
    %count$next = arith.addf %count$r, %have$r : f32
)",
                     {{"r", std::to_string(round)}, {"next", std::to_string(round + 1)}});
  }
  return text + set.fill(R"(    %least = arith.constant 1.0 : f32
    %count = arith.maximumf %count$rounds, %least : f32
    %log = math.log %count : f32
    %shared = arith.subf %last, %log : f32
)");
}

static std::string write(const Settings &set) {
  // Buckets of two rounds have nothing to do with each other: then the first chunk sees no other round.
  bool same = set.isOn("same_bucket"), causal = set.isOn("causal"), given = set.is("hash", "given");
  bool alone = set.is("wrap", "none") || (set.is("wrap", "rounds") && same && set.number("rounds") > 1);
  std::string ring = set.is("wrap", "cyclic") ? "1" : std::to_string(set.number("rounds"));
  std::string back =
      set.fill("  %rows = attn.look_back %order chunk($chunk) groups($ring) : !i -> !i\n", {{"ring", ring}});
  return set.fill(
      kReformer,
      {{"types", given ? ""
                       : set.fill("!w = tensor<?x${rounds}x${head_dim}x${half}x$dtype> // [heads, rounds, head_dim, "
                                  "buckets / 2]\n",
                                  {{"half", std::to_string(set.number("buckets") / 2)}})},
       {"hashed", given ? "%buckets: !i" : "%rotations: !w"},
       {"hash", given ? "" : "  %buckets = attn.lsh_buckets %qk, %rotations : !t, !w -> !i\n"},
       {"back", alone ? "" : back},
       {"rows", alone ? "order" : "rows"},
       {"near", set.fill(alone ? "attn.chunk_lookback %i, %j {size = $chunk, before = 1}"
                               : "attn.local_blocks %i, %j {size = $chunk, before = 0, after = $chunk}")},
       {"scaled", set.is("scale", "unit") ? "" : "scale(" + std::to_string(1.0 / set.number("head_dim")) + ") "},
       {"counted", set.isOn("dedup") ? countRounds(set) : ""},
       {"score", set.isOn("dedup") ? "shared" : "last"},
       {"past", causal ? kPast : ""},
       {"same", same ? set.fill(kSame, {{"before", causal ? "1" : "0"}}) : ""},
       {"keep", same     ? "2"
                : causal ? "1"
                         : "0"}});
}

Preset reformer() {
  return {"reformer",
          "Kitaev et al., Reformer (2020); wrap=none, same_bucket=on and dedup=on are the paper's rules, the defaults "
          "those of its "
          "authors' code",
          "learnable",
          "O(rounds N (chunk + log N))",
          /*decodes=*/true,
          {Setting::number("chunk", 64, 1, "tokens of a chunk, which sees itself and the one before"),
           Setting::number("rounds", 4, 1, "of hashing"),
           Setting::number("buckets", 128, 2, "of each round, an even number, about 2 N / chunk"), causalSetting("on"),
           Setting::word("wrap", {"rounds", "cyclic", "none"},
                         "the first chunk looks back at the last one of the round before; of its own; at none"),
           Setting::word("same_bucket", {"off", "on"}, "no key of another bucket"),
           Setting::word("dedup", {"off", "on"}, "a pair that several rounds have counts once; needs wrap=none"),
           Setting::word("scale", {"unit", "scaled"}, "scores are q k / |k|, or these / sqrt(head_dim)"),
           Setting::word("hash", {"rotations", "given"}, "buckets from rotations, or as an argument")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            if (set.number("buckets") % 2)
              return makeError("reformer: buckets = ", set.number("buckets"), " should be even");
            if (set.isOn("dedup") && !set.is("wrap", "none"))
              return makeError("reformer: dedup=on needs wrap=none");
            return write(set);
          }};
}

} // namespace attn::presets
