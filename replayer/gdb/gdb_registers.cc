#include "replayer/gdb/gdb_registers.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>

#include "common/text/hex.h"
#include "replayer/gdb/packet_hex.h"

namespace clew::replayer::gdb {
namespace {

// Where gdb's numbering has its groups.
constexpr size_t kGeneral = 0;
constexpr size_t kRip = 16;
constexpr size_t kEflags = 17;
constexpr size_t kSegments = 18;  // cs ss ds es fs gs
constexpr size_t kX87 = 24;
constexpr size_t kX87Control = 32;  // fctrl fstat ftag fiseg fioff ... fop
constexpr size_t kXmm = 40;
constexpr size_t kMxcsr = 56;
constexpr size_t kOrigRax = 57;
constexpr size_t kFsBase = 58;
constexpr size_t kGsBase = 59;
constexpr size_t kYmmHigh = 60;
constexpr size_t kEndOfAvx = 76;
constexpr size_t kXmm16 = kEndOfAvx;  // of AVX-512, to xmm31
constexpr size_t kYmm16High = 92;
constexpr size_t kOpmask = 108;
constexpr size_t kZmmHigh = 116;
constexpr size_t kEndOfAvx512 = 148;

constexpr std::array<Gpr, 16> kGeneralOrder = {
    kRax, kRbx, kRcx, kRdx, kRsi, kRdi, kRbp, kRsp,
    kR8,  kR9,  kR10, kR11, kR12, kR13, kR14, kR15};

// What the kernel gives every 64-bit process: linux
// arch/x86/include/asm/segment.h, __USER_CS and __USER_DS.
constexpr std::array<uint32_t, 6> kSelectors = {0x33, 0x2b, 0, 0, 0, 0};

// Up to the types of SSE.
constexpr std::string_view kCoreXml = R"(<?xml version="1.0"?>
<!DOCTYPE target SYSTEM "gdb-target.dtd">
<target>
<architecture>i386:x86-64</architecture>
<osabi>GNU/Linux</osabi>
<feature name="org.gnu.gdb.i386.core">
<flags id="i386_eflags" size="4">
<field name="CF" start="0" end="0"/><field name="" start="1" end="1"/>
<field name="PF" start="2" end="2"/><field name="AF" start="4" end="4"/>
<field name="ZF" start="6" end="6"/><field name="SF" start="7" end="7"/>
<field name="TF" start="8" end="8"/><field name="IF" start="9" end="9"/>
<field name="DF" start="10" end="10"/><field name="OF" start="11" end="11"/>
<field name="NT" start="14" end="14"/><field name="RF" start="16" end="16"/>
<field name="VM" start="17" end="17"/><field name="AC" start="18" end="18"/>
<field name="VIF" start="19" end="19"/><field name="VIP" start="20" end="20"/>
<field name="ID" start="21" end="21"/>
</flags>
<reg name="rax" bitsize="64" type="int64" regnum="0"/>
<reg name="rbx" bitsize="64" type="int64"/>
<reg name="rcx" bitsize="64" type="int64"/>
<reg name="rdx" bitsize="64" type="int64"/>
<reg name="rsi" bitsize="64" type="int64"/>
<reg name="rdi" bitsize="64" type="int64"/>
<reg name="rbp" bitsize="64" type="data_ptr"/>
<reg name="rsp" bitsize="64" type="data_ptr"/>
<reg name="r8" bitsize="64" type="int64"/>
<reg name="r9" bitsize="64" type="int64"/>
<reg name="r10" bitsize="64" type="int64"/>
<reg name="r11" bitsize="64" type="int64"/>
<reg name="r12" bitsize="64" type="int64"/>
<reg name="r13" bitsize="64" type="int64"/>
<reg name="r14" bitsize="64" type="int64"/>
<reg name="r15" bitsize="64" type="int64"/>
<reg name="rip" bitsize="64" type="code_ptr"/>
<reg name="eflags" bitsize="32" type="i386_eflags"/>
<reg name="cs" bitsize="32" type="int32"/>
<reg name="ss" bitsize="32" type="int32"/>
<reg name="ds" bitsize="32" type="int32"/>
<reg name="es" bitsize="32" type="int32"/>
<reg name="fs" bitsize="32" type="int32"/>
<reg name="gs" bitsize="32" type="int32"/>
<reg name="st0" bitsize="80" type="i387_ext"/>
<reg name="st1" bitsize="80" type="i387_ext"/>
<reg name="st2" bitsize="80" type="i387_ext"/>
<reg name="st3" bitsize="80" type="i387_ext"/>
<reg name="st4" bitsize="80" type="i387_ext"/>
<reg name="st5" bitsize="80" type="i387_ext"/>
<reg name="st6" bitsize="80" type="i387_ext"/>
<reg name="st7" bitsize="80" type="i387_ext"/>
<reg name="fctrl" bitsize="32" type="int" group="float"/>
<reg name="fstat" bitsize="32" type="int" group="float"/>
<reg name="ftag" bitsize="32" type="int" group="float"/>
<reg name="fiseg" bitsize="32" type="int" group="float"/>
<reg name="fioff" bitsize="32" type="int" group="float"/>
<reg name="foseg" bitsize="32" type="int" group="float"/>
<reg name="fooff" bitsize="32" type="int" group="float"/>
<reg name="fop" bitsize="32" type="int" group="float"/>
</feature>
<feature name="org.gnu.gdb.i386.sse">
)";

// A feature's types are its own.
constexpr std::string_view kVec128Xml =
    R"(<vector id="v8bf16" type="bfloat16" count="8"/>
<vector id="v4f" type="ieee_single" count="4"/>
<vector id="v2d" type="ieee_double" count="2"/>
<vector id="v16i8" type="int8" count="16"/>
<vector id="v8i16" type="int16" count="8"/>
<vector id="v4i32" type="int32" count="4"/>
<vector id="v2i64" type="int64" count="2"/>
<union id="vec128">
<field name="v8_bfloat16" type="v8bf16"/>
<field name="v4_float" type="v4f"/>
<field name="v2_double" type="v2d"/>
<field name="v16_int8" type="v16i8"/>
<field name="v8_int16" type="v8i16"/>
<field name="v4_int32" type="v4i32"/>
<field name="v2_int64" type="v2i64"/>
<field name="uint128" type="uint128"/>
</union>
)";

// The rest of SSE, up to AVX.
constexpr std::string_view kSseXml = R"(<flags id="i386_mxcsr" size="4">
<field name="IE" start="0" end="0"/><field name="DE" start="1" end="1"/>
<field name="ZE" start="2" end="2"/><field name="OE" start="3" end="3"/>
<field name="UE" start="4" end="4"/><field name="PE" start="5" end="5"/>
<field name="DAZ" start="6" end="6"/><field name="IM" start="7" end="7"/>
<field name="DM" start="8" end="8"/><field name="ZM" start="9" end="9"/>
<field name="OM" start="10" end="10"/><field name="UM" start="11" end="11"/>
<field name="PM" start="12" end="12"/><field name="FZ" start="15" end="15"/>
</flags>
<reg name="xmm0" bitsize="128" type="vec128" regnum="40"/>
<reg name="xmm1" bitsize="128" type="vec128"/>
<reg name="xmm2" bitsize="128" type="vec128"/>
<reg name="xmm3" bitsize="128" type="vec128"/>
<reg name="xmm4" bitsize="128" type="vec128"/>
<reg name="xmm5" bitsize="128" type="vec128"/>
<reg name="xmm6" bitsize="128" type="vec128"/>
<reg name="xmm7" bitsize="128" type="vec128"/>
<reg name="xmm8" bitsize="128" type="vec128"/>
<reg name="xmm9" bitsize="128" type="vec128"/>
<reg name="xmm10" bitsize="128" type="vec128"/>
<reg name="xmm11" bitsize="128" type="vec128"/>
<reg name="xmm12" bitsize="128" type="vec128"/>
<reg name="xmm13" bitsize="128" type="vec128"/>
<reg name="xmm14" bitsize="128" type="vec128"/>
<reg name="xmm15" bitsize="128" type="vec128"/>
<reg name="mxcsr" bitsize="32" type="i386_mxcsr" group="vector"/>
</feature>
<feature name="org.gnu.gdb.i386.linux">
<reg name="orig_rax" bitsize="64" type="int" regnum="57"/>
</feature>
<feature name="org.gnu.gdb.i386.segments">
<reg name="fs_base" bitsize="64" type="int" regnum="58"/>
<reg name="gs_base" bitsize="64" type="int"/>
</feature>
<feature name="org.gnu.gdb.i386.avx">
<reg name="ymm0h" bitsize="128" type="uint128" regnum="60"/>
<reg name="ymm1h" bitsize="128" type="uint128"/>
<reg name="ymm2h" bitsize="128" type="uint128"/>
<reg name="ymm3h" bitsize="128" type="uint128"/>
<reg name="ymm4h" bitsize="128" type="uint128"/>
<reg name="ymm5h" bitsize="128" type="uint128"/>
<reg name="ymm6h" bitsize="128" type="uint128"/>
<reg name="ymm7h" bitsize="128" type="uint128"/>
<reg name="ymm8h" bitsize="128" type="uint128"/>
<reg name="ymm9h" bitsize="128" type="uint128"/>
<reg name="ymm10h" bitsize="128" type="uint128"/>
<reg name="ymm11h" bitsize="128" type="uint128"/>
<reg name="ymm12h" bitsize="128" type="uint128"/>
<reg name="ymm13h" bitsize="128" type="uint128"/>
<reg name="ymm14h" bitsize="128" type="uint128"/>
<reg name="ymm15h" bitsize="128" type="uint128"/>
</feature>
)";

// The registers of AVX-512, in gdb's order.
struct Group {
  std::string_view name;  // of register i: "xmm" + i + suffix
  unsigned first;
  unsigned count;
  std::string_view suffix;
  unsigned bits;
  std::string_view type;
};
constexpr Group kAvx512[] = {{"xmm", 16, 16, "", 128, "vec128"},
                             {"ymm", 16, 16, "h", 128, "uint128"},
                             {"k", 0, 8, "", 64, "uint64"},
                             {"zmm", 0, 32, "h", 256, "v2ui128"}};

std::string Avx512Xml() {
  std::string xml = fmt::format(
      "<feature name=\"org.gnu.gdb.i386.avx512\">\n{}"
      "<vector id=\"v2ui128\" type=\"uint128\" count=\"2\"/>\n",
      kVec128Xml);
  size_t number = kXmm16;
  for (const Group& group : kAvx512) {
    for (unsigned i = group.first; i < group.first + group.count; ++i) {
      xml += fmt::format(
          "<reg name=\"{}{}{}\" bitsize=\"{}\" type=\"{}\" regnum=\"{}\"/>\n",
          group.name, i, group.suffix, group.bits, group.type, number++);
    }
  }
  return xml + "</feature>\n";
}

bool HasAvx512(x86::FeatureSet cpu) { return cpu.Has(x86::Feature::kAvx512f); }

template <class T>
std::string Hex(const T& value) {
  return ToHex(std::as_bytes(std::span(&value, 1)));
}

std::string Unavailable(size_t bytes) { return std::string(bytes * 2, 'x'); }

// st(i) counts from the top of the stack, the machine's array does not.
std::string StackRegisterHex(const machine::X87& x87, size_t i) {
  const size_t top = x87.status >> 11 & 7u;
  const machine::Float80& value = x87.regs[(top + i) % 8];
  return Hex(value.significand) + Hex(value.sign_exponent);
}

std::string X87ControlHex(const machine::X87& x87, size_t number) {
  switch (number - kX87Control) {
    case 0:
      return Hex<uint32_t>(x87.control);
    case 1:
      return Hex<uint32_t>(x87.status);
    case 2:
      return Hex<uint32_t>(x87.tag);
    default:
      return Unavailable(sizeof(uint32_t));
  }
}

std::string Avx512Hex(const machine::Registers& registers, size_t number) {
  if (number >= kZmmHigh) {
    return Hex(registers.vec[2][number - kZmmHigh].q) +
           Hex(registers.vec[3][number - kZmmHigh].q);
  }
  if (number >= kOpmask) {
    return Hex(registers.opmask[number - kOpmask]);
  }
  const size_t lane = number >= kYmm16High ? 1 : 0;
  const size_t first = lane == 1 ? kYmm16High : kXmm16;
  return Hex(registers.vec[lane][machine::kLowVecRegisters + number - first].q);
}

}  // namespace

std::string TargetXml(x86::FeatureSet cpu) {
  return fmt::format("{}{}{}{}</target>\n", kCoreXml, kVec128Xml, kSseXml,
                     HasAvx512(cpu) ? Avx512Xml() : "");
}

size_t RegisterCount(x86::FeatureSet cpu) {
  return HasAvx512(cpu) ? kEndOfAvx512 : kEndOfAvx;
}

std::string RegisterHex(const machine::Registers& registers, size_t number) {
  if (number < kRip) {
    return Hex(registers.gpr[kGeneralOrder[number - kGeneral]]);
  }
  if (number >= kSegments && number < kX87) {
    return Hex(kSelectors[number - kSegments]);
  }
  if (number >= kX87 && number < kX87Control) {
    return StackRegisterHex(registers.x87, number - kX87);
  }
  if (number >= kX87Control && number < kXmm) {
    return X87ControlHex(registers.x87, number);
  }
  if (number >= kXmm && number < kMxcsr) {
    return Hex(registers.vec[0][number - kXmm].q);
  }
  if (number >= kEndOfAvx) {
    return Avx512Hex(registers, number);
  }
  if (number >= kYmmHigh) {
    return Hex(registers.vec[1][number - kYmmHigh].q);
  }
  switch (number) {
    case kRip:
      return Hex(registers.rip);
    case kEflags:
      return Hex(static_cast<uint32_t>(registers.rflags));
    case kMxcsr:
      return Hex(registers.mxcsr);
    case kFsBase:
      return Hex(registers.fs_base);
    case kGsBase:
      return Hex(registers.gs_base);
    default:
      static_assert(kOrigRax + 1 == kFsBase);
      return Unavailable(sizeof(uint64_t));
  }
}

std::string AllRegistersHex(const machine::Registers& registers,
                            x86::FeatureSet cpu) {
  std::string text;
  for (size_t number = 0; number < RegisterCount(cpu); ++number) {
    text += RegisterHex(registers, number);
  }
  return text;
}

}  // namespace clew::replayer::gdb
