// Goal: what an instruction takes into use of x87 and AVX, as XSAVE tells, is
// what an Intel CPU has, though no value changes. (SSE is in use after whatever
// interrupts the program, which may happen anywhere.)
// Method: functions that restore the initial state, execute an instruction or
// two, and save; called here and on the machine. Oracle: the CPU, if it is
// Intel's and has AVX2. (Those of AMD go by values: save_state_test.cc.)

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>

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

// The first argument is an area without components, the second is where it is
// saved, and has room behind.
#define CLEW_SEQUENCE(name, insns)                                      \
  extern "C" void clew_in_use_##name(const void* initial, void* saved); \
  asm(".text\nclew_in_use_" #name                                       \
      ":\n mov $7, %eax\n xor %edx, %edx\n xrstor64 (%rdi)\n" insns     \
      "\n mov $7, %eax\n xsave64 (%rsi)\n xrstor64 (%rdi)\n ret\n");
CLEW_SEQUENCES(CLEW_SEQUENCE)
#undef CLEW_SEQUENCE

namespace clew::machine {
namespace {

struct Sequence {
  const char* name;
  void (*run)(const void*, void*);
};
constexpr Sequence kSequences[] = {
#define CLEW_ROW(name, insns) {#name, &clew_in_use_##name},
    CLEW_SEQUENCES(CLEW_ROW)
#undef CLEW_ROW
};

constexpr uint64_t kSse = 1u << kComponentSse;

struct alignas(64) Area {
  std::array<std::byte, 4096> bytes = {};
};
Area initial;  // in the image, so that the machine has them where they are here
Area saved;

TEST(InUseTest, AgreesWithTheCpu) {
  Registers regs;
  regs.mxcsr_mask = x86::HostMxcsrMask();
  if (!regs.is_of_intel() || !x86::HostFeatures().Contains(
                                 {x86::Feature::kAvx2, x86::Feature::kXsave})) {
    GTEST_SKIP() << "no CPU of Intel with AVX2";
  }
  constexpr size_t kMxcsrAt =
      offsetof(FxsaveArea, pointers) + offsetof(FxsaveMxcsr, mxcsr);
  std::memcpy(&initial.bytes[kMxcsrAt], &regs.mxcsr, sizeof(regs.mxcsr));
  GuestCall guest;
  CodeCache code(x86::HostFeatures());
  for (const auto& [name, run] : kSequences) {
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

}  // namespace
}  // namespace clew::machine
