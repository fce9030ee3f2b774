#include "bundle/perf_data/file_kind.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace clew::bundle {
namespace {

using Bytes = std::span<const std::byte>;
using std::string_view_literals::operator""sv;

struct Kind {
  std::string_view magic;
  std::string_view text;
};

// The first bytes as file(1) knows them.
constexpr std::array kKinds = {
    Kind{"\x1f\x8b"sv, "it looks like gzip: unpack it with gunzip first"},
    Kind{"\x28\xb5\x2f\xfd"sv,
         "it looks like zstd: unpack it with unzstd first"},
    Kind{"\xfd"
         "7zXZ\0"sv,
         "it looks like xz: unpack it with unxz first"},
    Kind{"BZh"sv, "it looks like bzip2: unpack it with bunzip2 first"},
    Kind{"PK\x03\x04"sv, "it looks like zip: unpack it with unzip first"},
    Kind{"\x7f"
         "ELF"sv,
         "it is an ELF file: a program or library goes to --images, a core "
         "dump to --core"},
    Kind{"PERFFILE"sv, "it is of perf before Linux 3.x, which had no Intel PT"},
};

constexpr size_t kTextBytes = 512;

bool IsTextByte(std::byte byte) {
  const auto value = static_cast<uint8_t>(byte);
  return value == '\t' || value == '\n' || value == '\r' ||
         (value >= 0x20 && value != 0x7f);
}

std::string_view Text(Bytes file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

}  // namespace

bool IsPerfData(Bytes file) { return Text(file).starts_with("PERFILE2"); }

std::string DescribeOtherFile(Bytes file) {
  for (const Kind& kind : kKinds) {
    if (Text(file).starts_with(kind.magic)) {
      return std::string(kind.text);
    }
  }
  const Bytes start = file.first(std::min(file.size(), kTextBytes));
  if (!start.empty() && std::ranges::all_of(start, IsTextByte)) {
    return "it looks like text, as perf script or perf report write it: import "
           "the perf.data that they read";
  }
  return "nothing known";
}

}  // namespace clew::bundle
