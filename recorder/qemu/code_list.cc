#include "recorder/qemu/code_list.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

#include "common/text/hex.h"

namespace clew::recorder {
namespace {

template <class T>
bool ParseHex(std::string_view text, T& to) {
  const auto [at, error] =
      std::from_chars(text.data(), text.data() + text.size(), to, 16);
  return error == std::errc() && at == text.data() + text.size();
}

Result<CodeInsn> ParseLine(const std::string& line) {
  const size_t space = line.find(' ');
  uint64_t ip = 0;
  bool ok = space != line.npos && line.size() % 2 == (space + 1) % 2 &&
            ParseHex(std::string_view(line).substr(0, space), ip);
  CodeInsn insn{.ip = TraceeAddr(ip), .bytes = {}};
  for (size_t at = space + 1; ok && at < line.size(); at += 2) {
    uint8_t byte = 0;
    ok = ParseHex(std::string_view(line).substr(at, 2), byte);
    insn.bytes.push_back(std::byte{byte});
  }
  if (!ok) {
    return CorruptInput("{:?} is no address and bytes of an instruction", line);
  }
  return insn;
}

}  // namespace

void CodeListWriter::Add(uint64_t ip, std::span<const uint8_t> bytes) {
  Insn insn = {};
  bytes = bytes.first(std::min(bytes.size(), sizeof(insn) - 1));
  std::memcpy(insn.data(), bytes.data(), bytes.size());
  insn.back() |= bytes.size() << 56;
  if (seen_.insert(insn).second) {
    file_.Append(fmt::format("{:x} {}\n", ip, ToHex(bytes)));
  }
}

Result<std::vector<CodeInsn>> ReadCodeList(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return SystemError(errno, fmt::format("cannot open {:?}", path));
  }
  std::vector<CodeInsn> list;
  for (std::string line; std::getline(file, line);) {
    CLEW_ASSIGN_OR_RETURN(insn, ParseLine(line));
    list.push_back(std::move(insn));
  }
  return list;
}

}  // namespace clew::recorder
