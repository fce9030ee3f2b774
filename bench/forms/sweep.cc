#include "bench/forms/sweep.h"

#include <Zydis/Zydis.h>

#include <algorithm>

#include "common/check.h"
#include "common/text/hex.h"
#include "machine/decode.h"
#include "machine/domain.h"
#include "machine/handlers.h"
#include "machine/insn/families.h"

namespace clew::bench {
namespace {

using machine::Decoded;
using machine::DecodeStatus;
using Bytes = std::span<const std::byte>;

// What Zydis says of an instruction; without length: it knows none.
struct Known {
  InsnForm form;
  std::string_view isa_set;
  size_t length = 0;
};

std::string_view NameOf(ZydisInstructionEncoding encoding) {
  switch (encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
      return "legacy";
    case ZYDIS_INSTRUCTION_ENCODING_3DNOW:
      return "3DNow";
    case ZYDIS_INSTRUCTION_ENCODING_XOP:
      return "XOP";
    case ZYDIS_INSTRUCTION_ENCODING_VEX:
      return "VEX";
    case ZYDIS_INSTRUCTION_ENCODING_EVEX:
      return "EVEX";
    case ZYDIS_INSTRUCTION_ENCODING_MVEX:
      return "MVEX";
  }
  return "?";
}

}  // namespace

void Occurrences::Add(uint64_t at, Bytes code) {
  if (count++ == 0) {
    addr = at;
    bytes = ToHex(code);
  }
}

uint64_t Tally::forms_covered() const {
  return static_cast<uint64_t>(std::ranges::count_if(
      forms,
      [](const auto& form) { return form.second.uncovered.count == 0; }));
}

struct Sweeper::Impl {
  Impl() : handlers(x86::kCarriedOut) {
    CLEW_CHECK(ZYAN_SUCCESS(ZydisDecoderInit(&zydis, ZYDIS_MACHINE_MODE_LONG_64,
                                             ZYDIS_STACK_WIDTH_64)),
               "zydis cannot be opened");
  }

  Known Ask(Bytes bytes) const {
    ZydisDecodedInstruction raw;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
            &zydis, nullptr, bytes.data(), bytes.size(), &raw))) {
      return {};
    }
    return {
        .form = {ZydisMnemonicGetString(raw.mnemonic), NameOf(raw.encoding)},
        .isa_set = ZydisISASetGetString(raw.meta.isa_set),
        .length = raw.length};
  }

  // UD2 and its kin raise #UD on the machine as on a CPU. Anything else that
  // the decoder takes for illegal and Zydis knows is a gap.
  bool Covers(const Decoded& decoded, const Known& known) const {
    switch (decoded.status) {
      case DecodeStatus::kOk:
        return handlers.Find(decoded) != nullptr;
      case DecodeStatus::kIllegal:
        return known.form.mnemonic.starts_with("ud");
      default:
        return false;
    }
  }

  // Adds what `bytes` begin with; returns its length.
  size_t Step(uint64_t addr, Bytes bytes, Tally& tally) {
    const Decoded decoded = decoder.Decode(addr, bytes);
    Known known = Ask(bytes);
    const bool decodes = decoded.status == DecodeStatus::kOk;
    if (!decodes && known.length == 0) {
      tally.no_insn.Add(addr, bytes.first(1));
      return 1;
    }
    const size_t length = decodes ? decoded.insn.length : known.length;
    const Bytes code = bytes.first(length);
    if (length != known.length) {
      tally.lengths_differing.Add(addr, code);
    }
    if (known.length == 0) {
      known.form = {decoded.mnemonic, "?"};
    }
    FormCounts& counts = tally.forms[known.form];
    counts.isa_set = known.isa_set;
    ++tally.insns;
    if (Covers(decoded, known)) {
      ++tally.insns_covered;
      ++counts.covered;
    } else {
      counts.uncovered.Add(addr, code);
    }
    return length;
  }

  machine::Decoder decoder;
  machine::Handlers<machine::Concrete> handlers;
  ZydisDecoder zydis;
};

Sweeper::Sweeper() : impl_(std::make_unique<Impl>()) {}
Sweeper::~Sweeper() = default;

void Sweeper::Sweep(const CodeRange& range, Tally& tally) {
  size_t at = 0;
  while (at < range.bytes.size()) {
    at += impl_->Step(range.addr + at, range.bytes.subspan(at), tally);
  }
}

x86::FeatureSet Sweeper::features() const { return impl_->handlers.features(); }

}  // namespace clew::bench
