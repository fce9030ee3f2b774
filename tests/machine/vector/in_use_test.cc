// Goal: what an instruction takes into use of x87, AVX and AVX-512, as XSAVE
// tells, is what an Intel CPU has, though no value changes. (SSE is in use
// after whatever interrupts the program, which may happen anywhere.) Method:
// functions that restore the initial state, execute an instruction or two, and
// save; called here and on the machine. Oracle: the CPU, if it is Intel's and
// has AVX2; for AVX-512, that too. (Those of AMD go by values:
// save_state_test.cc.)

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "common/x86/features.h"
#include "machine/xsave.h"
#include "tests/machine/guest_call.h"

#define CLEW_SEQUENCES(X)                                       \
  X(nothing, "nop")                                             \
  X(pxor, "pxor %xmm0, %xmm0")                                  \
  X(movaps, "movaps %xmm0, %xmm1")                              \
  X(load, "movups 1024(%rsi), %xmm1")                           \
  X(store, "movups %xmm1, 1024(%rsi)")                          \
  X(movss, "movss %xmm0, %xmm1")                                \
  X(movd, "movd %ecx, %xmm1")                                   \
  X(pinsrw, "pinsrw $1, %ecx, %xmm1")                           \
  X(movlps, "movlps 1024(%rsi), %xmm1")                         \
  X(cvtsi2sd, "cvtsi2sd %eax, %xmm1")                           \
  X(pshufb, "pshufb %xmm0, %xmm1")                              \
  X(sqrtsd, "sqrtsd %xmm0, %xmm1")                              \
  X(movmskps, "movmskps %xmm0, %ecx")                           \
  X(ucomisd, "ucomisd %xmm0, %xmm1")                            \
  X(pcmpistri, "pcmpistri $0, %xmm0, %xmm1")                    \
  X(pcmpistrm, "pcmpistrm $0, %xmm0, %xmm1")                    \
  X(stmxcsr, "stmxcsr 1024(%rsi)")                              \
  X(ldmxcsr, "stmxcsr 1024(%rsi)\n ldmxcsr 1024(%rsi)")         \
  X(vpxor_128, "vpxor %xmm0, %xmm0, %xmm0")                     \
  X(vpxor_256, "vpxor %ymm0, %ymm0, %ymm0")                     \
  X(vmovdqu_load, "vmovdqu 1024(%rsi), %ymm1")                  \
  X(vmovdqu_store, "vmovdqu %ymm1, 1024(%rsi)")                 \
  X(vpbroadcastb, "vpbroadcastb %xmm0, %ymm1")                  \
  X(vinserti128, "vinserti128 $1, %xmm0, %ymm1, %ymm2")         \
  X(vextracti128, "vextracti128 $1, %ymm0, %xmm1")              \
  X(vextracti128_store, "vextracti128 $1, %ymm0, 1024(%rsi)")   \
  X(vpgatherdd, "vpgatherdd %ymm0, 1024(%rsi, %ymm1), %ymm2")   \
  X(vmaskmovps, "vmaskmovps 1024(%rsi), %ymm0, %ymm1")          \
  X(vcvtpd2ps, "vcvtpd2ps %ymm0, %xmm1")                        \
  X(vcvtps2ph, "vcvtps2ph $0, %ymm0, %xmm1")                    \
  X(vcvttpd2dq, "vcvttpd2dq %ymm0, %xmm1")                      \
  X(vpmovzxbw, "vpmovzxbw %xmm0, %ymm1")                        \
  X(vpermq, "vpermq $0, %ymm0, %ymm1")                          \
  X(vpgatherqd, "vpgatherqd %xmm0, 1024(%rsi, %ymm1), %xmm2")   \
  X(vfmadd, "vfmadd231ps %ymm0, %ymm1, %ymm2")                  \
  X(vmovd, "vmovd %ecx, %xmm1")                                 \
  X(vaddss, "vaddss %xmm0, %xmm1, %xmm2")                       \
  X(vpextrb, "vpextrb $0, %xmm0, %ecx")                         \
  X(vmovmskpd, "vmovmskpd %ymm0, %ecx")                         \
  X(vpmovmskb, "vpmovmskb %ymm0, %ecx")                         \
  X(vptest, "vptest %ymm0, %ymm0")                              \
  X(upper_cleared, "vpcmpeqd %ymm0, %ymm0, %ymm0\n vzeroupper") \
  X(all_cleared, "vpcmpeqd %ymm0, %ymm0, %ymm0\n vzeroall")     \
  X(zero_again,                                                 \
    "vpcmpeqd %ymm0, %ymm0, %ymm0\n"                            \
    "vpxor %ymm0, %ymm0, %ymm0")                                \
  X(zero_by_128,                                                \
    "vpcmpeqd %ymm0, %ymm0, %ymm0\n"                            \
    "vpxor %xmm0, %xmm0, %xmm0")                                \
  X(vzeroupper, "vzeroupper")                                   \
  X(fninit, "fninit")                                           \
  X(fldz, "fldz\n fstp %st(0)")                                 \
  X(fldz_fninit, "fldz\n fstp %st(0)\n fninit")                 \
  X(fnstcw, "fnstcw 1024(%rsi)")                                \
  X(fldcw, "fnstcw 1024(%rsi)\n fldcw 1024(%rsi)")              \
  X(fnstsw, "fnstsw %ax")                                       \
  X(fnstenv, "fnstenv 1024(%rsi)")                              \
  X(fnop, "fnop")                                               \
  X(fwait, "fwait")                                             \
  X(ffree, "ffree %st(0)")                                      \
  X(emms, "emms")                                               \
  X(movq_mmx, "movq 1024(%rsi), %mm1\n emms")                   \
  X(movq2dq, "movq2dq %mm1, %xmm1\n emms")                      \
  X(fxsave, "fxsave64 1024(%rsi)")                              \
  X(fxrstor, "fxsave64 1024(%rsi)\n fxrstor64 1024(%rsi)")      \
  X(xrstor_avx,                                                 \
    "xsave64 1024(%rsi)\n orq $4, 1536(%rsi)\n"                 \
    "xrstor64 1024(%rsi)")                                      \
  X(xrstor_sse,                                                 \
    "vpxor %ymm0, %ymm0, %ymm0\n mov $2, %eax\n"                \
    "xrstor64 (%rdi)")

#define CLEW_ONES(reg) "vpternlogd $255, %" reg ", %" reg ", %" reg "\n "
#define CLEW_ONES_IN_K1 "kxnorq %k1, %k1, %k1\n "

// Of AVX-512. k1 is zero unless it is written.
#define CLEW_AVX512_SEQUENCES(X)                                             \
  X(evex_xmm, "vmovdqa32 %xmm0, %xmm1")                                      \
  X(evex_ymm, "vmovdqa32 %ymm0, %ymm1")                                      \
  X(evex_zmm, "vmovdqa32 %zmm0, %zmm1")                                      \
  X(evex_load, "vmovdqu32 1024(%rsi), %zmm1")                                \
  X(evex_load_ymm, "vmovdqu32 1024(%rsi), %ymm1")                            \
  X(evex_store, "vmovdqu32 %zmm1, 1024(%rsi)")                               \
  X(vpxord_xmm, "vpxord %xmm0, %xmm0, %xmm0")                                \
  X(vpxord_ymm, "vpxord %ymm0, %ymm0, %ymm0")                                \
  X(vpxord_zmm, "vpxord %zmm0, %zmm0, %zmm0")                                \
  X(vaddps_zmm, "vaddps %zmm0, %zmm1, %zmm2")                                \
  X(high_xmm, "vmovdqa32 %xmm0, %xmm16")                                     \
  X(high_ymm, "vmovdqa32 %ymm0, %ymm17")                                     \
  X(high_zmm, "vmovdqa32 %zmm0, %zmm18")                                     \
  X(high_load, "vmovdqu32 1024(%rsi), %xmm31")                               \
  X(high_store, "vmovdqu32 %zmm16, 1024(%rsi)")                              \
  X(high_vpxord, "vpxord %xmm16, %xmm16, %xmm16")                            \
  X(high_to_low, "vmovdqa32 %zmm16, %zmm0")                                  \
  X(high_to_low_ymm, "vmovdqa32 %ymm16, %ymm0")                              \
  X(high_vmovd, "vmovd %ecx, %xmm16")                                        \
  X(high_from_vmovd, "vmovd %xmm16, %ecx")                                   \
  X(high_vaddss, "vaddss %xmm0, %xmm1, %xmm16")                              \
  X(from_high_vaddss, "vaddss %xmm16, %xmm1, %xmm2")                         \
  X(high_vpinsrb, "vpinsrb $1, %ecx, %xmm0, %xmm16")                         \
  X(high_vpextrb, "vpextrb $1, %xmm16, %ecx")                                \
  X(high_vcvtsi2sd, "vcvtsi2sd %rcx, %xmm0, %xmm16")                         \
  X(high_vucomiss, "vucomiss %xmm16, %xmm0")                                 \
  X(rounded_scalar, "vaddss {rz-sae}, %xmm0, %xmm1, %xmm2")                  \
  X(rounded_cvtsi2sd, "vcvtsi2sd %rcx, {rz-sae}, %xmm0, %xmm1")              \
  X(rounded_to_gpr, "vcvtss2si {rz-sae}, %xmm0, %ecx")                       \
  X(rounded_zmm, "vaddps {rz-sae}, %zmm0, %zmm1, %zmm2")                     \
  X(sae_compare, "vcmpss $0, {sae}, %xmm0, %xmm0, %k1")                      \
  X(merge_none, "vmovdqa32 %zmm0, %zmm1{%k1}")                               \
  X(zero_all, "vmovdqa32 %zmm0, %zmm1{%k1}{z}")                              \
  X(merge_none_xmm, "vmovdqa32 %xmm0, %xmm1{%k1}")                           \
  X(merge_none_high, "vmovdqu32 1024(%rsi), %xmm16{%k1}")                    \
  X(store_none, "vmovdqu32 %zmm1, 1024(%rsi){%k1}")                          \
  X(vextracti64x4, "vextracti64x4 $1, %zmm0, %ymm1")                         \
  X(vextracti32x4, "vextracti32x4 $1, %zmm0, %xmm1")                         \
  X(vextracti32x4_ymm, "vextracti32x4 $1, %ymm0, %xmm1")                     \
  X(vextracti64x4_high, "vextracti64x4 $1, %zmm16, %ymm1")                   \
  X(vextracti64x4_store, "vextracti64x4 $1, %zmm0, 1024(%rsi)")              \
  X(vpmovqb, "vpmovqb %zmm0, %xmm1")                                         \
  X(vpmovqb_ymm, "vpmovqb %ymm0, %xmm1")                                     \
  X(vpmovqb_store, "vpmovqb %zmm0, 1024(%rsi)")                              \
  X(vcvtpd2ps_zmm, "vcvtpd2ps %zmm0, %ymm1")                                 \
  X(vcvtps2ph_zmm, "vcvtps2ph $0, %zmm0, %ymm1")                             \
  X(vpmovzxbd, "vpmovzxbd %xmm0, %zmm1")                                     \
  X(vbroadcastss, "vbroadcastss %xmm0, %zmm1")                               \
  X(vpcompressd, "vpcompressd %zmm0, %zmm1{%k1}")                            \
  X(vpcompressd_store, "vpcompressd %zmm0, 1024(%rsi){%k1}")                 \
  X(vpermt2d, "vpermt2d %zmm0, %zmm1, %zmm2")                                \
  X(gather, "vpgatherdd 1024(%rsi, %zmm0), %zmm1{%k1}")                      \
  X(gather_xmm, "vpgatherdd 1024(%rsi, %xmm0), %xmm1{%k1}")                  \
  X(gather_half, "vpgatherqd 1024(%rsi, %zmm0), %ymm1{%k1}")                 \
  X(scatter, "vpscatterdd %zmm1, 1024(%rsi, %zmm0){%k1}")                    \
  X(kmovw_gpr, "xor %ecx, %ecx\n kmovw %ecx, %k1")                           \
  X(kmovw_load, "kmovw 1024(%rsi), %k1")                                     \
  X(kmovw_store, "kmovw %k1, 1024(%rsi)")                                    \
  X(kmovw_to_gpr, "kmovw %k1, %ecx")                                         \
  X(kmovw_other, "kmovw %k2, %k1")                                           \
  X(kxorw, "kxorw %k1, %k1, %k1")                                            \
  X(kshiftlw, "kshiftlw $1, %k1, %k1")                                       \
  X(kortestw, "kortestw %k1, %k1")                                           \
  X(ktestw, "ktestw %k1, %k1")                                               \
  X(compare, "vpcmpeqd %zmm0, %zmm1, %k1")                                   \
  X(compare_high, "vpcmpeqd %xmm16, %xmm17, %k1")                            \
  X(vcmpss, "vcmpss $0, %xmm0, %xmm0, %k1")                                  \
  X(vpmovd2m, "vpmovd2m %zmm0, %k1")                                         \
  X(vpmovm2d, "vpmovm2d %k1, %zmm0")                                         \
  X(zmm_zeroed, CLEW_ONES("zmm0") "vpxord %zmm0, %zmm0, %zmm0")              \
  X(zmm_zeroed_by_vex, CLEW_ONES("zmm0") "vpxor %xmm0, %xmm0, %xmm0")        \
  X(high_zeroed, CLEW_ONES("zmm16") "vpxord %zmm16, %zmm16, %zmm16")         \
  X(k1_zeroed, CLEW_ONES_IN_K1 "kxorq %k1, %k1, %k1")                        \
  X(zmm_upper_cleared, CLEW_ONES("zmm0") "vzeroupper")                       \
  X(zmm_all_cleared, CLEW_ONES("zmm0") "vzeroall")                           \
  X(high_upper_cleared, CLEW_ONES("zmm16") "vzeroupper")                     \
  X(high_all_cleared, CLEW_ONES("zmm16") "vzeroall")                         \
  X(k1_all_cleared, CLEW_ONES_IN_K1 "vzeroall")                              \
  X(zmm_fxrstor,                                                             \
    CLEW_ONES("zmm0") "fxsave64 4096(%rsi)\n fxrstor64 4096(%rsi)")          \
  X(xrstor_avx512,                                                           \
    "xsave64 4096(%rsi)\n orq $0xe0, 4608(%rsi)\n"                           \
    "xrstor64 4096(%rsi)")                                                   \
  X(xrstor_avx_alone, CLEW_ONES("zmm0") "mov $4, %eax\n xrstor64 (%rdi)")    \
  X(xrstor_zmm_alone, CLEW_ONES("zmm0") "mov $0x40, %eax\n xrstor64 (%rdi)") \
  X(xrstor_opmask, CLEW_ONES_IN_K1 "mov $0x20, %eax\n xrstor64 (%rdi)")      \
  X(xrstor_high, CLEW_ONES("zmm16") "mov $0x80, %eax\n xrstor64 (%rdi)")

// The first argument is an area without components, the second is where it is
// saved, and has room behind.
#define CLEW_SEQUENCE(name, insns)                                      \
  extern "C" void clew_in_use_##name(const void* initial, void* saved); \
  asm(".text\nclew_in_use_" #name                                       \
      ":\n mov $0xe7, %eax\n xor %edx, %edx\n xrstor64 (%rdi)\n" insns  \
      "\n mov $0xe7, %eax\n xsave64 (%rsi)\n xrstor64 (%rdi)\n ret\n");
CLEW_SEQUENCES(CLEW_SEQUENCE)
CLEW_AVX512_SEQUENCES(CLEW_SEQUENCE)
#undef CLEW_SEQUENCE

namespace clew::machine {
namespace {

struct Sequence {
  const char* name;
  void (*run)(const void*, void*);
};
#define CLEW_ROW(name, insns) {#name, &clew_in_use_##name},
constexpr Sequence kSequences[] = {CLEW_SEQUENCES(CLEW_ROW)};
constexpr Sequence kAvx512Sequences[] = {CLEW_AVX512_SEQUENCES(CLEW_ROW)};
#undef CLEW_ROW

constexpr uint64_t kSse = 1u << kComponentSse;

struct alignas(64) Area {
  std::array<std::byte, 8192> bytes = {};
};
Area initial;  // in the image, so that the machine has them where they are here
Area saved;

// Calls each of `sequences` on both.
void Compare(std::span<const Sequence> sequences) {
  Registers regs;
  regs.mxcsr_mask = x86::HostMxcsrMask();
  constexpr size_t kMxcsrAt =
      offsetof(FxsaveArea, pointers) + offsetof(FxsaveMxcsr, mxcsr);
  std::memcpy(&initial.bytes[kMxcsrAt], &regs.mxcsr, sizeof(regs.mxcsr));
  GuestCall guest;
  CodeCache code(x86::HostFeatures());
  for (const auto& [name, run] : sequences) {
    SCOPED_TRACE(name);
    const auto address = [](const auto* of) {
      return reinterpret_cast<uint64_t>(of);
    };
    Registers begin = guest.Prepare(reinterpret_cast<uint64_t>(run),
                                    {address(&initial), address(&saved)});
    begin.mxcsr_mask = regs.mxcsr_mask;
    const GuestResult result = RunToReturn(guest.memory(), code, begin, 100);
    ASSERT_TRUE(result.returned) << result.stop.detail;
    uint64_t told = 0;
    ASSERT_TRUE(
        guest.memory().Load(address(&saved) + sizeof(FxsaveArea), told));
    run(&initial, &saved);
    uint64_t truth = 0;
    std::memcpy(&truth, &saved.bytes[sizeof(FxsaveArea)], sizeof(truth));
    EXPECT_EQ(told | kSse, truth | kSse);
  }
}

bool IsIntelWith(x86::FeatureSet features) {
  Registers regs;
  regs.mxcsr_mask = x86::HostMxcsrMask();
  return regs.is_of_intel() && x86::HostFeatures().Contains(features);
}

TEST(InUseTest, AgreesWithTheCpu) {
  if (!IsIntelWith({x86::Feature::kAvx2, x86::Feature::kXsave})) {
    GTEST_SKIP() << "no CPU of Intel with AVX2";
  }
  Compare(kSequences);
}

TEST(InUseTest, AgreesWithACpuThatHasAvx512) {
  if (!IsIntelWith({x86::Feature::kAvx512f, x86::Feature::kAvx512bw,
                    x86::Feature::kAvx512dq, x86::Feature::kAvx512vl,
                    x86::Feature::kXsave})) {
    GTEST_SKIP() << "no CPU of Intel with AVX-512";
  }
  Compare(kAvx512Sequences);
}

}  // namespace
}  // namespace clew::machine
