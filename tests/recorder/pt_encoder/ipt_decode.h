#ifndef CLEW_TESTS_RECORDER_PT_ENCODER_IPT_DECODE_H_
#define CLEW_TESTS_RECORDER_PT_ENCODER_IPT_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "recorder/pt_encoder/encoder_config.h"

// libipt as the oracle of encoder tests.

namespace clew::recorder {

// Code at an address.
struct CodeRegion {
  uint64_t addr = 0;
  std::vector<uint8_t> bytes;
};
using CodeImage = std::vector<CodeRegion>;

// The block decoder tells the first and last address of a block only.
inline constexpr uint64_t kNotTold = 0;

// What libipt says a stream executed.
struct IptRun {
  std::vector<uint64_t> ips;
  std::vector<uint64_t> times;      // of each ip; empty from the block decoder
  std::vector<size_t> overflows;    // index into ips of the one after
  std::vector<std::string> errors;  // decoding stops at the first
  bool operator==(const IptRun&) const = default;
};

// Decodes from the PSB at or after `from_offset`. `image` outlives the call.
IptRun DecodeInsns(std::span<const uint8_t> pt, const EncoderConfig& config,
                   const CodeImage& image, size_t from_offset = 0);
IptRun DecodeBlocks(std::span<const uint8_t> pt, const EncoderConfig& config,
                    const CodeImage& image);

// Offsets of all PSB packets.
std::vector<size_t> FindPsbs(std::span<const uint8_t> pt);

// How libipt classifies the instruction at `ip`; nullopt if it cannot.
struct IptInsn {
  int iclass = 0;  // enum pt_insn_class
  uint8_t size = 0;
};
std::optional<IptInsn> ClassifyWithIpt(const CodeImage& image, uint64_t ip);

}  // namespace clew::recorder

#endif  // CLEW_TESTS_RECORDER_PT_ENCODER_IPT_DECODE_H_
