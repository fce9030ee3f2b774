// Comparisons with what is no number, smaller and larger: UCOMISD, CMPPD, MINSD
// in Intel SDM 2.
#include <emmintrin.h>
#include <math.h>

#include "check.h"

int main(void) {
  volatile double number = 1;
  volatile double none = NAN;
  CHECK(!(none < number) && !(none >= number) && none != none);
  const __m128d a = _mm_set_sd(none);
  const __m128d b = _mm_set_sd(number);
  CHECK(_mm_cvtsd_f64(_mm_min_sd(a, b)) == 1);
  CHECK(isnan(_mm_cvtsd_f64(_mm_min_sd(b, a))));
  CHECK((_mm_movemask_pd(_mm_cmpunord_pd(a, b)) & 1) == 1);
  CHECK((_mm_movemask_pd(_mm_cmpneq_pd(a, a)) & 1) == 1);
  volatile double zero = 0;
  CHECK(-zero == zero && signbit(-zero) != 0);
  return Ok();
}
