#include "Function.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace attn::test;

Tensor::Tensor(std::vector<int64_t> dims, uint8_t code, uint8_t bits) : shape(std::move(dims)) {
  int64_t size = bits / 8;
  for (int64_t extent : shape)
    size *= extent;
  bytes.resize(size + 1);
  dl.data = bytes.data();
  dl.device = {kDLCPU, 0};
  dl.ndim = shape.size();
  dl.dtype = {code, bits, 1};
}

const DLTensor *Tensor::get() {
  dl.shape = shape.data();
  dl.strides = strides.empty() ? nullptr : strides.data();
  return &dl;
}

void Tensor::fill(float value) { std::fill_n(data<float>(), bytes.size() / 4, value); }

void Tensor::randomise(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (size_t k = 0; k < bytes.size() / 4; ++k)
    data<float>()[k] = normal(random);
}

int64_t Function::addString(const char *text) {
  int64_t at = strings.size();
  strings += text;
  strings += '\0';
  return at;
}

int64_t Function::addTensor(const char *name, int64_t role, std::vector<int64_t> dims, int64_t code, int64_t bits) {
  AttnTensor tensor = {};
  tensor.name = addString(name);
  tensor.role = role;
  tensor.dtype_code = code;
  tensor.bits = bits;
  tensor.inner_contiguous = 1;
  tensor.rank = dims.size();
  std::copy(dims.begin(), dims.end(), tensor.dims);
  tensors.push_back(tensor);
  return tensors.size() - 1;
}

int64_t Function::addSymbol(const char *name) {
  symbols.push_back({addString(name), {}});
  return -static_cast<int64_t>(symbols.size());
}

template <typename T>
static void append(std::vector<int64_t> &flat, const T &part) {
  const int64_t *words = reinterpret_cast<const int64_t *>(&part);
  flat.insert(flat.end(), words, words + sizeof(T) / 8);
}

const AttnFunction *Function::table() {
  AttnFunction head = {};
  head.abi_version = ATTN_ABI_VERSION;
  head.num_tensors = tensors.size();
  head.num_symbols = symbols.size();
  head.num_kernels = head.num_steps = kernels.size();
  head.threads = threads;
  head.device = ATTN_CPU;
  for (const AttnTensor &tensor : tensors)
    head.num_arguments += tensor.role == ATTN_INPUT || tensor.role == ATTN_OUTPUT;
  if (flat.empty()) {
    append(flat, head);
    for (const AttnTensor &tensor : tensors)
      append(flat, tensor);
    for (const AttnSymbol &symbol : symbols)
      append(flat, symbol);
    for (const AttnKernel &kernel : kernels)
      append(flat, kernel);
    for (size_t k = 0; k < kernels.size(); ++k) {
      AttnStep step = {};
      step.kernel = k;
      append(flat, step);
    }
  }
  return reinterpret_cast<const AttnFunction *>(flat.data());
}

int Function::call(std::vector<Tensor *> args, int mode, attn_plan **plan) {
  std::vector<const DLTensor *> tensors;
  for (Tensor *arg : args)
    tensors.push_back(arg ? arg->get() : nullptr);
  return attn_call(table(), strings.data(), code.data(), tensors.data(), mode, plan);
}

PlainKernel attn::test::plainKernel;

/// The element (b, h, token, d) of a rank-4 tensor; fewer indices for a rank-3 one.
static float *element(const AttnMemRef *memref, int64_t rank, int64_t b, int64_t h, int64_t token, int64_t d = 0) {
  const int64_t *strides = memref->extents + rank;
  int64_t offset = b * strides[0] + h * strides[1] + token * strides[2] + (rank == 4 ? d * strides[3] : 0);
  return static_cast<float *>(memref->data) + offset;
}

/// The scores of one row, in powers of 16, of the keys that its tile's runs and the mask keep.
static void scores(AttnMemRef *const *operands, const AttnTask &task, int64_t row, const int64_t *offsets,
                   const AttnRun *runs, std::vector<std::pair<int64_t, float>> &kept) {
  int64_t dim = operands[0]->extents[3], q = task.query_token + row * task.query_step;
  kept.clear();
  for (int64_t r = offsets[0]; r < offsets[1]; ++r)
    for (int64_t key = std::max<int64_t>(runs[r].begin, task.key_begin);
         key < std::min<int64_t>(runs[r].end, task.key_end); ++key) {
      int64_t token = task.key_token + key * task.key_step;
      bool keep = plainKernel.keep(task.batch, task.head, q + task.query_offset, token);
      EXPECT_TRUE(keep || runs[r].kind == ATTN_PARTIAL);
      if (!keep)
        continue;
      float score = 0;
      for (int64_t d = 0; d < dim; ++d)
        score += *element(operands[0], 4, task.batch, task.head, q, d) *
                 *element(operands[1], 4, task.batch, task.key_head, token, d);
      kept.push_back({token, score / std::sqrt(float(dim)) * 0.360673760f});
    }
}

static void plainRow(AttnMemRef *const *operands, const AttnTask &task, int64_t row, const int64_t *offsets,
                     const AttnRun *runs, float *partial) {
  std::vector<std::pair<int64_t, float>> kept;
  scores(operands, task, row, offsets, runs, kept);
  int64_t dim = operands[2]->extents[3], token = task.query_token + row * task.query_step;
  float m = -std::numeric_limits<float>::infinity(), l = 0;
  std::vector<float> sum(dim);
  for (auto &[key, x] : kept)
    m = std::max(m, x);
  for (auto &[key, x] : kept) {
    l += std::exp2(4 * (x - m));
    for (int64_t d = 0; d < dim; ++d)
      sum[d] += std::exp2(4 * (x - m)) * *element(operands[2], 4, task.batch, task.key_head, key, d);
  }
  if (task.partial) {
    std::copy(sum.begin(), sum.end(), partial);
    partial[dim] = m;
    partial[dim + 1] = l;
    return;
  }
  for (int64_t d = 0; d < dim; ++d)
    *element(operands[3], 4, task.batch, task.head, token, d) = l > 0 ? sum[d] / l : 0;
  if (operands[4])
    *element(operands[4], 3, task.batch, task.head, token) = l > 0 ? (4 * m + std::log2(l)) * 0.69314718f : m;
}

static void plainTask(AttnMemRef *const *operands, const AttnTask *task, const int64_t *offsets, const AttnRun *runs,
                      float *scratch, float *partials) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch) % 64, 0u);
  std::memset(scratch, 255, plainKernel.scratchFloats * sizeof(float));
  for (int64_t r = 0; r < task->rows; ++r) {
    int64_t row = task->row + r, token = task->query_token + row * task->query_step;
    EXPECT_LT(row, task->query_count);
    if (task->key_begin == 0) // the first part alone counts
      __atomic_fetch_add(
          &plainKernel.visits[(task->batch * operands[0]->extents[1] + task->head) * task->num_queries + token], 1,
          __ATOMIC_RELAXED);
    int64_t tile = row / plainKernel.tile - task->row / plainKernel.tile;
    plainRow(operands, *task, row, offsets + tile, runs,
             partials ? partials + r * (operands[2]->extents[3] + 2) : nullptr);
  }
}

static int32_t plainClassify(AttnMemRef *const *, const AttnTables *, int64_t, int64_t, int64_t b, int64_t h,
                             int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) {
  bool any = false, all = true;
  for (int64_t i = iLo; i <= iHi; i += plainKernel.step)
    for (int64_t j = jLo; j <= jHi && (!any || all); j += plainKernel.step)
      (plainKernel.keep(b, h, i, j) ? any : all) = plainKernel.keep(b, h, i, j);
  return all ? ATTN_FULL : any ? ATTN_PARTIAL : ATTN_EMPTY;
}

Function attn::test::makeAttention(int64_t d, int64_t dv, bool lse) {
  Function function("window");
  int64_t b = function.addSymbol("batch"), h = function.addSymbol("heads"), kv = function.addSymbol("kv_heads"),
          n = function.addSymbol("queries"), m = function.addSymbol("keys");
  AttnKernel kernel = {};
  kernel.query = function.addTensor("q", ATTN_INPUT, {b, h, n, d});
  kernel.key = function.addTensor("k", ATTN_INPUT, {b, kv, m, d});
  kernel.value = function.addTensor("v", ATTN_INPUT, {b, kv, m, dv});
  kernel.out = function.addTensor("out", ATTN_OUTPUT, {b, h, n, dv});
  kernel.lse = lse ? function.addTensor("lse", ATTN_OUTPUT, {b, h, n}) : -1;
  kernel.joined_out = kernel.joined_lse = -1;
  kernel.has_mask = kernel.depends_batch = kernel.depends_head = 1;
  kernel.reindex_size = 1;
  kernel.query_tile = 48;
  kernel.tail_tile = kernel.tail_limit = 16;
  kernel.key_tile = 128;
  kernel.key_granule = 16;
  kernel.group_tiles = 8;
  kernel.scratch_base = 100;
  kernel.scratch_per_dim = 3;
  kernel.code_classify = function.addCode(plainClassify);
  kernel.code_task = kernel.code_tail = function.addCode(plainTask);
  function.kernels.push_back(kernel);
  return function;
}

void attn::test::reference(Tensor &q, Tensor &k, Tensor &v, int64_t offset, Tensor &out, Tensor &lse) {
  int64_t heads = q.shape[1], n = q.shape[2], dim = q.shape[3], kvHeads = k.shape[1], m = k.shape[2], dv = v.shape[3];
  for (int64_t row = 0; row < q.shape[0] * heads * n; ++row) {
    int64_t b = row / n / heads, h = row / n % heads, i = row % n + offset;
    int64_t kv = b * kvHeads + h / (heads / kvHeads);
    std::vector<double> sum(dv);
    double total = 0;
    for (int64_t j = 0; j < m; ++j) {
      if (!plainKernel.keep(b, h, i, j))
        continue;
      double score = 0;
      for (int64_t d = 0; d < dim; ++d)
        score += double(q.data<float>()[row * dim + d]) * k.data<float>()[(kv * m + j) * dim + d];
      double weight = std::exp(score / std::sqrt(double(dim)));
      total += weight;
      for (int64_t d = 0; d < dv; ++d)
        sum[d] += weight * v.data<float>()[(kv * m + j) * dv + d];
    }
    for (int64_t d = 0; d < dv; ++d)
      out.data<float>()[row * dv + d] = total > 0 ? sum[d] / total : 0;
    lse.data<float>()[row] = std::log(total);
  }
}
