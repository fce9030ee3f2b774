#include "tests/litmus/litmus_program.h"

#include <fmt/format.h>

#include <sstream>

#include "common/check.h"

namespace clew::test {
namespace {

using Kind = LitmusOp::Kind;

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) {
    const size_t first = part.find_first_not_of(' ');
    const size_t last = part.find_last_not_of(' ');
    parts.push_back(
        first == std::string::npos ? "" : part.substr(first, last - first + 1));
  }
  return parts;
}

// a, a.4, a.4+2
void TakePlace(const std::string& text, LitmusOp& op) {
  op.at = 8 * static_cast<uint32_t>(text.at(0) - 'a');
  if (text.size() > 1) {
    const auto parts = Split(text.substr(2), '+');
    op.size_bytes = static_cast<uint32_t>(std::stoul(parts.at(0)));
    if (parts.size() > 1) {
      op.at += static_cast<uint32_t>(std::stoul(parts[1]));
    }
  }
  CLEW_CHECK(op.at + op.size_bytes <= kLitmusBytes, "place {}", text);
}

LitmusOp ParseOp(std::string text) {
  LitmusOp op;
  if (text == "mfence" || text == "sfence" || text == "lfence") {
    op.kind = text == "mfence"   ? Kind::kFence
              : text == "sfence" ? Kind::kStoreFence
                                 : Kind::kLoadFence;
    return op;
  }
  if (text.starts_with("lock ")) {
    op.locked = true;
    text = text.substr(5);
  }
  if (text.ends_with("++")) {
    op.kind = Kind::kIncrement;
    TakePlace(text.substr(0, text.size() - 2), op);
    return op;
  }
  const auto sides = Split(text, '=');
  CLEW_CHECK(sides.size() == 2, "operation {:?}", text);
  if (sides[0] != "r") {
    TakePlace(sides[0], op);
    const bool copies = sides[1].starts_with('$');
    op.kind = copies ? Kind::kCopy : Kind::kStore;
    op.value =
        static_cast<uint32_t>(std::stoul(sides[1].substr(copies ? 1 : 0)));
    return op;
  }
  const auto words = Split(sides[1], ' ');
  if (words.size() == 1) {
    TakePlace(words[0], op);
    return op;
  }
  op.kind = words[0] == "add"    ? Kind::kAdd
            : words[0] == "xchg" ? Kind::kExchange
                                 : Kind::kSwapIfZero;
  TakePlace(words.at(1), op);
  op.value = static_cast<uint32_t>(std::stoul(words.at(2)));
  return op;
}

std::string PlaceText(const LitmusOp& op) {
  const char name = static_cast<char>('a' + op.at / 8);
  return op.size_bytes == 8 && op.at % 8 == 0
             ? std::string(1, name)
             : fmt::format("{}.{}+{}", name, op.size_bytes, op.at % 8);
}

std::string OpText(const LitmusOp& op) {
  const std::string place = PlaceText(op);
  const std::string lock = op.locked ? "lock " : "";
  switch (op.kind) {
    case Kind::kLoad:
      return "r=" + place;
    case Kind::kStore:
      return fmt::format("{}={}", place, op.value);
    case Kind::kCopy:
      return fmt::format("{}=${}", place, op.value);
    case Kind::kIncrement:
      return lock + place + "++";
    case Kind::kAdd:
      return fmt::format("{}r=add {} {}", lock, place, op.value);
    case Kind::kExchange:
      return fmt::format("r=xchg {} {}", place, op.value);
    case Kind::kSwapIfZero:
      return fmt::format("{}r=swap {} {}", lock, place, op.value);
    case Kind::kFence:
      return "mfence";
    case Kind::kStoreFence:
      return "sfence";
    case Kind::kLoadFence:
      break;
  }
  return "lfence";
}

}  // namespace

bool HasResult(Kind kind) {
  return kind == Kind::kLoad || kind == Kind::kAdd || kind == Kind::kExchange ||
         kind == Kind::kSwapIfZero;
}

LitmusProgram ParseLitmus(std::string_view text) {
  LitmusProgram program;
  for (const std::string& thread : Split(std::string(text), '|')) {
    program.emplace_back();
    for (const std::string& op : Split(thread, ';')) {
      program.back().push_back(ParseOp(op));
    }
  }
  return program;
}

std::string LitmusText(const LitmusProgram& program) {
  std::string text;
  for (const LitmusThread& thread : program) {
    text += text.empty() ? "" : " | ";
    std::string ops;
    for (const LitmusOp& op : thread) {
      ops += (ops.empty() ? "" : "; ") + OpText(op);
    }
    text += ops;
  }
  return text;
}

}  // namespace clew::test
