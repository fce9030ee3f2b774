// Routines for run_test.cc, without libraries; SUFFIX tells the optimisation.
#include <stddef.h>
#include <stdint.h>

#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
#define GUEST(name) uint64_t NAME(name, SUFFIX)(uint64_t seed, uint64_t rounds)

__extension__ typedef unsigned __int128 Wide;

static uint64_t Next(uint64_t* state) {
  *state += 0x9e3779b97f4a7c15u;
  uint64_t x = *state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Integer operations of all widths, divisions, rotations, bit counts.
GUEST(GuestMix) {
  uint64_t sum = seed;
  for (uint64_t i = 0; i < rounds * 50; ++i) {
    const uint64_t a = Next(&seed), b = Next(&seed) | 1;
    const uint32_t c = (uint32_t)a, d = (uint32_t)(b >> 32) | 1;
    sum += a / b + a % b + c / d + c % d;
    sum ^= (uint64_t)((int64_t)a / (int64_t)(b >> 20 | 1));
    sum += (uint64_t)((int32_t)c % (int32_t)(d >> 3 | 1));
    sum = (sum << (a & 63)) | (sum >> ((64 - (a & 63)) & 63));
    sum += (uint64_t)__builtin_popcountll(a) + (uint64_t)__builtin_ctzll(b);
    sum ^= __builtin_bswap64(a) + __builtin_bswap32(d);
    sum += (uint64_t)(((Wide)a * b) >> 64);
    sum += (uint64_t)(uint16_t)a * (uint16_t)b + (uint64_t)((int8_t)a >> 2);
    sum += (uint64_t)((a > b) + ((int64_t)a < (int64_t)b) + (c <= d));
    sum ^= (uint64_t)__sync_fetch_and_add(&seed, 1);
    (void)__sync_bool_compare_and_swap(&seed, a, b);
  }
  return sum;
}

// Recursion, arrays, pointers, indirect calls.
static int Less(const uint32_t* a, const uint32_t* b) { return *a < *b; }
static int More(const uint32_t* a, const uint32_t* b) { return *a > *b; }

static void Sort(uint32_t* v, size_t n,
                 int (*before)(const uint32_t*, const uint32_t*)) {
  if (n < 2) {
    return;
  }
  const uint32_t pivot = v[n / 2];
  size_t low = 0, high = n - 1;
  for (;;) {
    while (before(&v[low], &pivot)) ++low;
    while (before(&pivot, &v[high])) --high;
    if (low >= high) break;
    const uint32_t swap = v[low];
    v[low++] = v[high];
    v[high--] = swap;
  }
  Sort(v, low, before);
  Sort(v + low, n - low, before);
}

GUEST(GuestSort) {
  static uint32_t values[4000];
  const size_t n = (size_t)(rounds * 60);
  int (*const volatile order)(const uint32_t*, const uint32_t*) =
      seed % 2 == 0 ? Less : More;
  for (size_t i = 0; i < n; ++i) {
    values[i] = (uint32_t)Next(&seed);
  }
  Sort(values, n, order);
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    sum = sum * 31 + values[i];
  }
  return sum;
}

// Bytes, switches, string instructions of the compiler's choice.
GUEST(GuestText) {
  static char text[8192];
  uint64_t counts[8];
  for (size_t i = 0; i < 8; ++i) {
    counts[i] = 0;  // one by one: a sanitizer's memset cannot run there
  }
  for (size_t i = 0; i < sizeof(text); ++i) {
    text[i] = (char)(Next(&seed) >> 40);
  }
  for (uint64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < 512; ++i) {
      switch (text[(i * 7 + round) % sizeof(text)] & 15) {
        case 0:
          ++counts[0];
          break;
        case 1:
          counts[1] += i;
          break;
        case 2:
          counts[2] ^= round;
          break;
        case 5:
          counts[3] = counts[3] * 3 + 1;
          break;
        case 7:
          counts[4] -= i;
          break;
        case 11:
          counts[5] += counts[4];
          break;
        default:
          ++counts[6];
          break;
      }
    }
    char* p = text + round;
    size_t n = 700;
    __asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(round) : "memory");
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < 8; ++i) {
    sum = sum * 1099511628211u + counts[i];
  }
  for (size_t i = 0; i < sizeof(text); ++i) {
    sum = sum * 31 + (uint8_t)text[i];
  }
  return sum;
}

// Scalar and vector floating point, conversions, long double.
GUEST(GuestFloat) {
  double v[64], sum = 0;
  long double wide = 1;
  float narrow = 0;
  for (size_t i = 0; i < 64; ++i) {
    v[i] = (double)(int64_t)(Next(&seed) >> 12) / 1024.0;
  }
  for (uint64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < 63; ++i) {
      v[i] = v[i] * 0.5 + v[i + 1] * 0.25;
      sum += v[i] > 1e9 ? 1.0 / v[i] : __builtin_sqrt(v[i]);
    }
    narrow = narrow * 0.75f + (float)v[round % 64];
    wide = wide * 1.25L + (long double)v[round % 64] / 3;
  }
  union {
    double d;
    uint64_t u;
  } out = {.d = sum};
  return out.u ^ (uint64_t)(int64_t)narrow ^ (uint64_t)(int64_t)(wide / 1e9L);
}
