#include "tests/collector/web/html_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace clew::collector::web {
namespace {

bool IsLetter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t'; }

std::string Decode(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, char>, 5> kNamed = {{
      {"&amp;", '&'},
      {"&lt;", '<'},
      {"&gt;", '>'},
      {"&quot;", '"'},
      {"&#39;", '\''},
  }};
  std::string out;
  while (!text.empty()) {
    const auto* found = std::ranges::find_if(kNamed, [&](const auto& named) {
      return text.starts_with(named.first);
    });
    out += found == kNamed.end() ? text[0] : found->second;
    text.remove_prefix(found == kNamed.end() ? 1 : found->first.size());
  }
  return out;
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view html) : left_(html) {}

  Tokens Run() {
    while (!left_.empty()) {
      if (left_.starts_with("<!")) {
        TakeDeclaration();
      } else if (left_.size() >= 2 && left_[0] == '<' &&
                 (IsLetter(left_[1]) || left_[1] == '/')) {
        TakeTag();
      } else {
        TakeText();
      }
    }
    return std::move(tokens_);
  }

 private:
  void Break(const std::string& what) {
    if (tokens_.broken.empty()) {
      tokens_.broken = fmt::format("{} before {:?}", what, left_.substr(0, 60));
    }
  }

  void TakeDeclaration() {
    const size_t end = std::min(left_.find('>'), left_.size() - 1);
    if (left_.substr(0, end + 1) != "<!DOCTYPE html>") {
      Break("a comment or declaration");
    }
    left_.remove_prefix(end + 1);
  }

  void TakeText() {
    const size_t end = std::min(left_.find('<', 1), left_.size());
    if (left_[0] == '<') {
      Break("a bare <");
    }
    tokens_.text += Decode(left_.substr(0, end));
    left_.remove_prefix(end);
  }

  std::string TakeName() {
    size_t end = 0;
    while (end < left_.size() && !IsBlank(left_[end]) && left_[end] != '>' &&
           left_[end] != '=' && left_[end] != '/') {
      ++end;
    }
    std::string name(left_.substr(0, end));
    left_.remove_prefix(end);
    return name;
  }

  void TakeTag() {
    left_.remove_prefix(1);
    Tag tag;
    if (left_.starts_with('/')) {
      tag.is_end = true;
      left_.remove_prefix(1);
    }
    tag.name = TakeName();
    while (!left_.empty() && left_[0] != '>') {
      if (IsBlank(left_[0])) {
        left_.remove_prefix(1);
      } else {
        TakeAttribute(tag);
      }
    }
    left_.remove_prefix(std::min<size_t>(1, left_.size()));
    tokens_.text += '\n';
    tokens_.tags.push_back(std::move(tag));
  }

  void TakeAttribute(Tag& tag) {
    std::string name = TakeName();
    if (!left_.starts_with("=\"")) {
      Break("an attribute without a value in quotes");
      left_.remove_prefix(std::min<size_t>(1, left_.size()));
      return;
    }
    left_.remove_prefix(2);
    const size_t end = std::min(left_.find('"'), left_.size());
    tag.attributes.emplace_back(std::move(name), Decode(left_.substr(0, end)));
    left_.remove_prefix(std::min(end + 1, left_.size()));
  }

  std::string_view left_;
  Tokens tokens_;
};

}  // namespace

Tokens TokensOf(std::string_view html) { return Tokenizer(html).Run(); }

std::string TextOfHtml(std::string_view html) {
  const size_t body = html.find("<body");
  html.remove_prefix(body == std::string_view::npos ? 0 : body);
  std::string text;
  for (const char c : TokensOf(html).text) {
    if (!IsBlank(c)) {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  return text;
}

}  // namespace clew::collector::web
