#include "decoder/assertion.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <span>

#include "common/os/file.h"
#include "decoder/loaded_images.h"
#include "decoder/unwinder.h"

namespace clew::decoder {
namespace {

constexpr std::string_view kBegin = "Assertion `";
constexpr std::string_view kEnd = "' failed";
constexpr std::string_view kBetween = ": ";
constexpr size_t kLineDigitsMax = 10;

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= kLineDigitsMax &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "FILE:LINE" and, behind ": ", perhaps FUNCTION.
std::optional<Assertion> ParsePlace(std::string_view place) {
  for (size_t colon = place.find(':'); colon != std::string_view::npos;
       colon = place.find(':', colon + 1)) {
    const std::string_view rest = place.substr(colon + 1);
    const size_t digits = std::min(rest.find(kBetween), rest.size());
    if (colon > 0 && !place.substr(0, colon).contains(kBetween) &&
        IsNumber(rest.substr(0, digits))) {
      const size_t function = std::min(digits + kBetween.size(), rest.size());
      return Assertion{.file = std::string(place.substr(0, colon)),
                       .line = std::string(rest.substr(0, digits)),
                       .function = std::string(rest.substr(function)),
                       .expression = {}};
    }
  }
  return std::nullopt;
}

// Without the program's name, which has ": " behind it and a place does not.
std::string_view WithoutProgram(std::string_view place) {
  const size_t end = place.find(kBetween);
  const size_t colon = place.substr(0, end).rfind(':');
  const bool is_place = end == std::string_view::npos ||
                        (colon != std::string_view::npos &&
                         IsNumber(place.substr(colon + 1, end - colon - 1)));
  return is_place ? place : place.substr(end + kBetween.size());
}

bool Has(std::span<const std::byte> image, const std::string& text) {
  // With the NUL.
  return memmem(image.data(), image.size(), text.c_str(), text.size() + 1) !=
         nullptr;
}

bool Has(std::span<const std::byte> image, const Assertion& assertion) {
  return Has(image, assertion.expression) && Has(image, assertion.file) &&
         (assertion.function.empty() || Has(image, assertion.function));
}

bool IsInAnImage(const LoadedImages& images, const Assertion& assertion) {
  return std::ranges::any_of(images.all(), [&](const LoadedImage& image) {
    if (image.file.empty()) {
      return false;
    }
    const auto file = MappedFile::Open(image.file);
    return file && Has(file->bytes(), assertion);
  });
}

bool Aborted(const Failure& failure) {
  return failure.kind == FailureKind::kSignal && failure.signal == SIGABRT;
}

}  // namespace

std::optional<Assertion> ParseAssertion(std::string_view message) {
  for (const std::string_view end : {"\n", "."}) {
    message.remove_suffix(message.ends_with(end) ? end.size() : 0);
  }
  const size_t begin = message.find(kBegin);
  if (message.size() > Unwinder::kMessageBytesMax || !IsPrintable(message) ||
      begin == std::string_view::npos || !message.ends_with(kEnd) ||
      !message.substr(0, begin).ends_with(kBetween)) {
    return std::nullopt;
  }
  std::string_view place = message.substr(0, begin - kBetween.size());
  auto assertion = ParsePlace(WithoutProgram(place));
  message.remove_prefix(begin + kBegin.size());
  if (!assertion || message.size() <= kEnd.size()) {
    return std::nullopt;
  }
  message.remove_suffix(kEnd.size());
  assertion->expression = message;
  return assertion;
}

std::string ToString(const Assertion& assertion) {
  return fmt::format("{}:{}: {}{}{}{}{}", assertion.file, assertion.line,
                     assertion.function,
                     assertion.function.empty() ? "" : kBetween, kBegin,
                     assertion.expression, kEnd);
}

Result<std::optional<Assertion>> FindAssertion(const bundle::Bundle& bundle) {
  const std::string path = bundle.core_path();
  if (path.empty() || !Aborted(bundle.manifest().failure)) {
    return std::nullopt;
  }
  CLEW_ASSIGN_OR_RETURN(core, bundle::CoreDump::Open(path));
  CLEW_ASSIGN_OR_RETURN(images, LoadedImages::FromCore(bundle, core));
  Unwinder unwinder(images, &core);
  auto assertion = ParseAssertion(unwinder.AbortMessage());
  if (!assertion || !IsInAnImage(images, *assertion)) {
    return std::nullopt;
  }
  return assertion;
}

}  // namespace clew::decoder
