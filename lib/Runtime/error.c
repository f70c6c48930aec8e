/* The last message, and giving back plans: the two symbols that all objects of a program share. */
#include "Internal.h"
#include "attn/Runtime/Levels.h"

/* Weak, so that the objects of one program agree on one definition, and with it on one buffer per thread. Being weak it
 * is also never inlined, so every part of the runtime writes to the buffer of that definition. */
__attribute__((weak, visibility("default"))) const char *attn_last_error(void) {
  static _Thread_local char text[ATTN_ERROR_SIZE];
  return text;
}

char *attn_error_text(void) { return (char *)attn_last_error(); }

int attn_no_level(const char *function, const char *names) {
  snprintf(attn_error_text(), ATTN_ERROR_SIZE,
           "%s: compiled for %s, none of which runs on this machine; add a CPU to --cpu, as x86-64", function, names);
  return ATTN_NO_CPU;
}

/* The plan knows how it was made, so that this may be the definition of another object. */
__attribute__((weak, visibility("default"))) void attn_plan_free(attn_plan *plan) {
  if (plan)
    plan->release(plan);
}
