/* Calls of a compiled object, by name: what each prints is what FileCheck reads. */
#include "device.h"
#include "packed.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { HEADS = 2, TOKENS = 40, DIM = 64 };

static int64_t shape[4] = {1, HEADS, TOKENS, DIM}, ids_shape[2] = {1, TOKENS};
static DLTensor q, k, v, doc, out;

static DLTensor tensor(DLDataType type, int rank, int64_t *extents, size_t bytes) {
  DLTensor made = {0};
  made.data = device_allocate(bytes);
  made.device.device_type = kDLCUDA;
  made.ndim = rank;
  made.dtype = type;
  made.shape = extents;
  return made;
}

/* Values of 1: then each output is 1 whatever the scores are. */
static int make_tensors(void) {
  static uint16_t ones[HEADS * TOKENS * DIM];
  static int32_t ids[TOKENS];
  DLDataType bf16 = {kDLBfloat, 16, 1}, i32 = {kDLInt, 32, 1};
  for (int n = 0; n < HEADS * TOKENS * DIM; ++n)
    ones[n] = 0x3f80;
  for (int n = 0; n < TOKENS; ++n)
    ids[n] = n / 13;
  DLTensor *all[] = {&q, &k, &v, &out};
  for (int n = 0; n < 4; ++n)
    *all[n] = tensor(bf16, 4, shape, sizeof(ones));
  doc = tensor(i32, 2, ids_shape, sizeof(ids));
  return device_write(q.data, ones, sizeof(ones)) && device_write(k.data, ones, sizeof(ones)) &&
         device_write(v.data, ones, sizeof(ones)) && device_write(doc.data, ids, sizeof(ids));
}

static int is_one(void) {
  static uint16_t got[HEADS * TOKENS * DIM];
  int good = device_read(got, out.data, sizeof(got));
  for (int n = 0; n < HEADS * TOKENS * DIM; ++n)
    good &= got[n] == 0x3f80;
  return good;
}

static void answer(int code) { printf("code %d: %s\n", code, code ? attn_last_error() : "ok"); }

static int call(void) { return packed(&q, &k, &v, &doc, &out, NULL); }

static void *free_plan(void *plan) {
  attn_plan_free(plan);
  return NULL;
}

/* The plan is freed by a thread that has no context. */
static void plan_and_run(void) {
  attn_plan *plan = NULL;
  void *stream = &plan; /* only handed on */
  pthread_t thread;
  answer(packed_plan(&plan, &q, &k, &v, &doc, stream));
  for (int n = 0; n < 2; ++n)
    answer(packed_run(plan, &q, &k, &v, &doc, &out, stream));
  pthread_create(&thread, NULL, free_plan, plan);
  pthread_join(thread, NULL);
  printf("ones: %d\n", is_one());
}

static void *call_in_thread(void *result) {
  *(int *)result = call();
  return NULL;
}

static void threads(void) {
  pthread_t all[4];
  int codes[4];
  for (int n = 0; n < 4; ++n)
    pthread_create(&all[n], NULL, call_in_thread, &codes[n]);
  for (int n = 0; n < 4; ++n) {
    pthread_join(all[n], NULL);
    printf("code %d\n", codes[n]);
  }
  printf("ones: %d\n", is_one());
}

static void host_tensor(void) {
  k.device.device_type = kDLCPU;
  answer(call());
}

static void two_gpus(void) {
  k.device.device_id = 1;
  answer(call());
}

static void other_gpu(void) {
  q.device.device_id = k.device.device_id = v.device.device_id = doc.device.device_id = out.device.device_id = 1;
  answer(call());
}

static void too_long(void) {
  shape[2] = (INT64_C(1) << 30) + 1;
  answer(call());
}

static void *run_on_other_gpu(void *plan) {
  q.device.device_id = k.device.device_id = v.device.device_id = doc.device.device_id = out.device.device_id = 1;
  answer(packed_run(plan, &q, &k, &v, &doc, &out, NULL));
  attn_plan_free(plan);
  return NULL;
}

/* By a thread whose GPU is another one than that of the plan. */
static void plan_elsewhere(void) {
  attn_plan *plan = NULL;
  pthread_t thread;
  answer(packed_plan(&plan, &q, &k, &v, &doc, NULL));
  pthread_create(&thread, NULL, run_on_other_gpu, plan);
  pthread_join(thread, NULL);
}

static void once(void) {
  answer(call());
  printf("ones: %d\n", is_one());
}

int main(int argc, char **argv) {
  const struct {
    const char *name;
    void (*run)(void);
  } all[] = {{"once", once},         {"plan-and-run", plan_and_run},
             {"threads", threads},   {"host-tensor", host_tensor},
             {"two-gpus", two_gpus}, {"other-gpu", other_gpu},
             {"too-long", too_long}, {"plan-elsewhere", plan_elsewhere}};
  const char *missing = device_start();
  if (missing || !make_tensors() || argc < 2) {
    printf("cannot start: %s\n", missing ? missing : "no memory");
    return 1;
  }
  for (size_t n = 0; n < sizeof(all) / sizeof(all[0]); ++n)
    if (strcmp(all[n].name, argv[1]) == 0) {
      all[n].run();
      return 0;
    }
  return 1;
}
