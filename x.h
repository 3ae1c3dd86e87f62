/* x: _first, by func 0.1.0.

   Arrays are stored row by row. Outputs must not overlap inputs.
   in  x_: x, one number of int64
   out out: result, one number of int64
   work: X_WORKSPACE bytes of memory, aligned for double, which nothing else uses during a call; may be NULL.
   Returns 0, or 1 where a matrix was singular or an index out of range. */
#ifndef X_H
#define X_H

#include <stdint.h>

#define X_WORKSPACE 0

#ifdef __cplusplus
extern "C" {
#endif

int x(int64_t x_, int64_t *out, void *work);

#ifdef __cplusplus
}
#endif
#endif
