// Code for a CPU with AVX-512 (F, CD, BW, DQ, VL), in two threads: arithmetic
// under masks, rounding of its own, broadcasts, permutations, compression,
// gathers and scatters, narrowing, opmask arithmetic, the results of which all
// end in memory. Between them signals come, whose handler leaves other values
// in the vector and opmask registers. On another CPU it does nothing.
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#define CPU \
  __attribute__((target("avx512f,avx512cd,avx512bw,avx512dq,avx512vl")))

enum { kThreads = 2, kRounds = 40, kWords = 64 };

static uint32_t g_words[kThreads][kWords];
static float g_floats[kThreads][kWords];
static uint64_t g_masks[kThreads];

static int HasAll(void) {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

CPU static void Handle(int signal) {
  (void)signal;
  __asm__ volatile(
      "vpternlogd $255, %%zmm0, %%zmm0, %%zmm0\n\t"
      "vmovdqa64 %%zmm0, %%zmm7\n\tvmovdqa64 %%zmm0, %%zmm16\n\t"
      "vmovdqa64 %%zmm0, %%zmm31\n\tkxnorq %%k0, %%k0, %%k1\n\t"
      "kmovq %%k1, %%k5\n\tkmovq %%k1, %%k7" ::
          : "xmm0", "xmm7", "xmm16", "xmm31", "k1", "k5", "k7");
}

CPU static uint64_t MixIntegers(uint32_t* words, __m512i seed) {
  __m512i a = _mm512_loadu_si512(words);
  __m512i b = _mm512_loadu_si512(words + 16);
  const __m512i index = _mm512_and_si512(b, _mm512_set1_epi32(kWords - 1));
  const __mmask16 less = _mm512_cmplt_epu32_mask(a, b);
  a = _mm512_mask_add_epi32(a, less, a, _mm512_mullo_epi32(b, seed));
  a = _mm512_xor_si512(a,
                       _mm512_mask_i32gather_epi32(b, less, index, words, 4));
  b = _mm512_permutex2var_epi32(a, index, b);
  a = _mm512_ternarylogic_epi32(a, b, seed, 0x96);
  b = _mm512_maskz_compress_epi32(less, b);
  a = _mm512_mask_expand_epi32(a, (__mmask16)~less, b);
  b = _mm512_rolv_epi32(b, a);
  a = _mm512_mask_shuffle_epi8(a, _mm512_movepi8_mask(b), b, a);
  b = _mm512_add_epi32(b, _mm512_lzcnt_epi32(_mm512_conflict_epi32(index)));
  _mm512_mask_compressstoreu_epi32(words + 32, less, a);
  _mm512_mask_i32scatter_epi32(words, (__mmask16)0x1111, index, b, 4);
  _mm256_mask_storeu_epi16(words + 48, _mm512_movepi32_mask(a),
                           _mm512_cvtepi32_epi16(b));
  _mm512_storeu_si512(words, a);
  _mm512_storeu_si512(words + 16, b);
  const __mmask64 bytes = _mm512_cmpgt_epu8_mask(a, b);
  return _cvtmask64_u64(_kxor_mask64(bytes, _kshiftli_mask64(bytes, 7)));
}

CPU static void MixFloats(float* floats) {
  __m512 a = _mm512_loadu_ps(floats);
  __m512 b = _mm512_loadu_ps(floats + 16);
  const __mmask16 ordered = _mm512_cmp_ps_mask(a, b, _CMP_ORD_Q);
  a = _mm512_mask_div_round_ps(a, ordered, b, _mm512_set1_ps(3.0f),
                               _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  b = _mm512_fmadd_ps(a, b, _mm512_set1_ps(0.5f));
  b = _mm512_roundscale_ps(_mm512_sqrt_ps(_mm512_mul_ps(b, b)), 0x31);
  const __m512d doubles = _mm512_cvtepu64_pd(_mm512_castps_si512(
      _mm512_getmant_ps(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src)));
  _mm512_storeu_ps(floats, _mm512_scalef_ps(a, _mm512_set1_ps(-2.0f)));
  _mm512_storeu_ps(floats + 16, b);
  _mm256_storeu_ps(floats + 32, _mm512_cvtpd_ps(doubles));
  _mm512_mask_storeu_ps(floats + 48, _mm512_fpclass_ps_mask(a, 0x5e),
                        _mm512_rcp14_ps(b));
}

CPU static void* Work(void* argument) {
  const size_t number = (size_t)argument;
  uint32_t* words = g_words[number];
  for (uint32_t i = 0; i < kWords; ++i) {
    words[i] = (i + 1) * 2654435761u * (uint32_t)(number + 1);
    g_floats[number][i] = (float)(int32_t)words[i] / 65536.0f;
  }
  for (int round = 0; round < kRounds; ++round) {
    if (round % 16 == 5) {
      raise(SIGUSR1);
    }
    g_masks[number] += MixIntegers(words, _mm512_set1_epi32(2 * round + 1));
    MixFloats(g_floats[number]);
  }
  return NULL;
}

// All of the registers outlive a signal that comes within a system call.
CPU static int KeepsRegisters(void) {
  uint64_t kept[2][8] = {{0}};
  uint64_t mask = 0;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  raise(SIGUSR1);
  __asm__ volatile(
      "vpternlogd $255, %%zmm7, %%zmm7, %%zmm7\n\t"
      "vpsrlq $9, %%zmm7, %%zmm7\n\tvmovdqa64 %%zmm7, %%zmm31\n\t"
      "kxnorq %%k0, %%k0, %%k5\n\tkshiftrq $9, %%k5, %%k5\n\t"
      "mov $8, %%r10d\n\tmov $14, %%eax\n\tsyscall\n\t"  // rt_sigprocmask
      "vmovdqu64 %%zmm7, (%[kept])\n\tvmovdqu64 %%zmm31, 64(%[kept])\n\t"
      "kmovq %%k5, (%[mask])"
      :
      : "D"((long)SIG_UNBLOCK), "S"(&set),
        "d"(0L), [kept] "r"(kept), [mask] "r"(&mask)
      : "rax", "rcx", "r10", "r11", "xmm7", "xmm31", "k5", "memory");
  for (int i = 0; i < 8; ++i) {
    if (kept[0][i] != ~0ull >> 9 || kept[1][i] != ~0ull >> 9) {
      return 0;
    }
  }
  return mask == ~0ull >> 9;
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
  return KeepsRegisters() ? EXIT_SUCCESS : EXIT_FAILURE;
}
