// Lanes are saturated, packed, shuffled and compared: PADDSW, PACKUSWB, PSHUFD,
// PMOVMSKB in Intel SDM 2.
#include <emmintrin.h>
#include <string.h>

#include "check.h"

int main(void) {
  const __m128i large = _mm_set1_epi16(30000);
  short words[8];
  __m128i sum = _mm_adds_epi16(large, large);
  memcpy(words, &sum, 16);
  CHECK(words[0] == 32767 && words[7] == 32767);
  unsigned char bytes[16];
  const __m128i packed = _mm_packus_epi16(large, _mm_set1_epi16(-4));
  memcpy(bytes, &packed, 16);
  CHECK(bytes[7] == 255 && bytes[8] == 0);
  const __m128i order = _mm_set_epi32(3, 2, 1, 0);
  int lanes[4];
  const __m128i mixed = _mm_shuffle_epi32(order, _MM_SHUFFLE(0, 1, 2, 3));
  memcpy(lanes, &mixed, 16);
  CHECK(lanes[0] == 3 && lanes[3] == 0);
  CHECK(_mm_movemask_epi8(_mm_cmpgt_epi32(order, _mm_set1_epi32(1))) == 0xff00);
  CHECK(_mm_cvtsi128_si64(_mm_sad_epu8(packed, _mm_setzero_si128())) == 2040);
  return Ok();
}
