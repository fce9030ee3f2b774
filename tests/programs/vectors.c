// Code for a CPU with AVX2, FMA, F16C, BMI2, LZCNT and AES, in two threads:
// arithmetic, shuffles, permutations, gathers, moves under a mask, comparisons,
// conversions and bits of general registers, the results of which all end in
// memory. Between them signals come, whose handler leaves other values in the
// vector registers. On another CPU it does nothing.
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#define CPU __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,aes,pclmul")))

enum { kThreads = 2, kRounds = 40, kWords = 64 };

static uint32_t g_words[kThreads][kWords];
static float g_floats[kThreads][kWords];
static uint64_t g_bits[kThreads];

static int HasAll(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("aes") &&
         __builtin_cpu_supports("pclmul");
}

CPU static void Handle(int signal) {
  (void)signal;
  __asm__ volatile(
      "vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n\tvmovdqa %%ymm0, %%ymm7\n\t"
      "vmovdqa %%ymm0, %%ymm15" ::
          : "xmm0", "xmm7", "xmm15");
}

CPU static void MixIntegers(uint32_t* words, __m256i seed) {
  __m256i a = _mm256_loadu_si256((const __m256i*)words);
  __m256i b = _mm256_loadu_si256((const __m256i*)(words + 8));
  const __m256i index = _mm256_and_si256(b, _mm256_set1_epi32(kWords - 1));
  a = _mm256_add_epi32(a, _mm256_mullo_epi32(b, seed));
  a = _mm256_xor_si256(a, _mm256_i32gather_epi32((const int*)words, index, 4));
  b = _mm256_permutevar8x32_epi32(a, index);
  a = _mm256_shuffle_epi8(a, b);
  b = _mm256_permute2x128_si256(a, b, 0x21);
  b = _mm256_sllv_epi32(b, _mm256_and_si256(a, _mm256_set1_epi32(31)));
  a = _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi32(a, b));
  _mm256_maskstore_epi32((int*)words + 16, b, a);
  _mm256_storeu_si256((__m256i*)words, a);
  _mm256_storeu_si256((__m256i*)(words + 8), b);
}

CPU static void MixFloats(float* floats) {
  __m256 a = _mm256_loadu_ps(floats);
  __m256 b = _mm256_loadu_ps(floats + 8);
  a = _mm256_fmadd_ps(a, b, _mm256_set1_ps(0.5f));
  a = _mm256_and_ps(a, _mm256_cmp_ps(a, b, _CMP_NEQ_UQ));
  const __m128i halves = _mm256_cvtps_ph(a, 0);
  b = _mm256_cvtph_ps(halves);
  b = _mm256_div_ps(_mm256_hadd_ps(a, b), _mm256_set1_ps(3.0f));
  const __m256d doubles = _mm256_sqrt_pd(
      _mm256_cvtps_pd(_mm256_castps256_ps128(_mm256_mul_ps(b, b))));
  _mm256_storeu_ps(floats, _mm256_sub_ps(a, b));
  _mm256_storeu_ps(floats + 8, b);
  _mm_storeu_ps(floats + 16, _mm256_cvtpd_ps(doubles));
  _mm_storeu_ps(floats + 20, _mm_rcp_ps(_mm256_extractf128_ps(b, 1)));
}

CPU static uint64_t MixBits(uint64_t bits, const uint32_t* words) {
  const __m128i key = _mm_loadu_si128((const __m128i*)words);
  const __m128i text = _mm_aesenc_si128(_mm_set1_epi64x((int64_t)bits), key);
  const __m128i product = _mm_clmulepi64_si128(text, key, 0x01);
  bits += (uint64_t)_mm_extract_epi64(product, 1);
  bits = _pdep_u64(bits, 0x7777777777777777) + _pext_u64(bits, ~bits >> 7);
  bits ^= _bzhi_u64(bits >> 3, (uint32_t)(bits & 63));
  return bits + _lzcnt_u64(bits | 1) + _tzcnt_u64(bits | 1 << 20) +
         _blsr_u64(bits);
}

CPU static void* Work(void* argument) {
  const size_t number = (size_t)argument;
  uint32_t* words = g_words[number];
  for (uint32_t i = 0; i < kWords; ++i) {
    words[i] = (i + 1) * 2654435761u * (uint32_t)(number + 1);
    g_floats[number][i] = (float)(int32_t)words[i] / 65536.0f;
  }
  for (int round = 0; round < kRounds; ++round) {
    const __m256i seed = _mm256_set1_epi32(2 * round + 1);
    if (round % 16 == 5) {
      raise(SIGUSR1);
    }
    MixIntegers(words, seed);
    MixFloats(g_floats[number]);
    g_bits[number] = MixBits(g_bits[number] + words[round], words);
  }
  return NULL;
}

// The upper halves outlive a signal that comes within a system call.
CPU static int KeepsUpperHalves(void) {
  uint64_t kept[4] = {0};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  raise(SIGUSR1);
  __asm__ volatile(
      "vpcmpeqd %%ymm7, %%ymm7, %%ymm7\n\tvpsrlq $9, %%ymm7, %%ymm7\n\t"
      "mov $8, %%r10d\n\tmov $14, %%eax\n\tsyscall\n\t"  // rt_sigprocmask
      "vmovdqu %%ymm7, %0"
      : "=m"(kept)
      : "D"((long)SIG_UNBLOCK), "S"(&set), "d"(0L)
      : "rax", "rcx", "r10", "r11", "xmm7", "memory");
  for (int i = 0; i < 4; ++i) {
    if (kept[i] != ~0ull >> 9) {
      return 0;
    }
  }
  return 1;
}

int main(void) {
  if (!HasAll()) {
    return EXIT_SUCCESS;
  }
  struct sigaction action = {.sa_handler = Handle};
  sigaction(SIGUSR1, &action, NULL);
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Work, (void*)i);
  }
  for (size_t i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  return KeepsUpperHalves() ? EXIT_SUCCESS : EXIT_FAILURE;
}
