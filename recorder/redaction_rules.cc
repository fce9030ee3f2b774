#include "recorder/redaction_rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <sstream>

namespace clew::recorder {
namespace {

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::string> PartsOf(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

bool Matches(const std::string& pattern, const std::string& name,
             int flags = 0) {
  return fnmatch(pattern.c_str(), name.c_str(), flags) == 0;
}

// Of names that stand for secrets: programs take api_key, Api_Key and API_KEY.
const std::string* FindInAnyCase(const std::vector<std::string>& patterns,
                                 const std::string& name) {
  const auto found = std::ranges::find_if(patterns, [&](const auto& pattern) {
    return Matches(pattern, name, FNM_CASEFOLD);
  });
  return found == patterns.end() ? nullptr : &*found;
}

// What ends a name within a word: "host=db password=x", "a=1&token=2",
// "--env=DB_PASS=x", "Cookie: x".
constexpr std::string_view kNameEnds = "=:,;&? \t\n\"'";

bool IsSegmentPattern(const std::string& pattern) {
  constexpr const char* kNames[] = {"[stack]", "[heap]", "anonymous", "file",
                                    "all"};
  return pattern.starts_with('/') ||
         std::ranges::find(kNames, pattern) != std::end(kNames);
}

bool MatchesSegment(const std::string& pattern, SegmentKind kind,
                    const std::string& path) {
  if (pattern == "all") {
    return true;
  }
  switch (kind) {
    case SegmentKind::kStack:
      return pattern == "[stack]";
    case SegmentKind::kHeap:
      return pattern == "[heap]" || pattern == "anonymous";
    case SegmentKind::kAnonymous:
      return pattern == "anonymous";
    case SegmentKind::kFile:
      return pattern == "file" ||
             (pattern.starts_with('/') && Matches(pattern, path));
  }
  return false;
}

}  // namespace

Result<RedactionRules> RedactionRules::Parse(std::string_view text,
                                             const std::string& name) {
  if (text.size() > kTextBytesMax) {
    return InvalidArgument("{}: has {} bytes, wanted at most {}", name,
                           text.size(), kTextBytesMax);
  }
  RedactionRules rules;
  std::istringstream stream{std::string(text)};
  size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const Status status = rules.AddLine(WordsOf(line));
    if (!status) {
      return InvalidArgument("{}: line {}: {}", name, number,
                             status.error().message);
    }
  }
  return rules;
}

Status RedactionRules::AddLine(const std::vector<std::string>& words) {
  if (words.empty()) {
    return {};
  }
  if (words[0] == "core") {
    CLEW_RETURN_IF_ERROR(AddRules(words, core_));
    for (const Rule& rule : core_) {
      if (!IsSegmentPattern(rule.pattern)) {
        return InvalidArgument(
            "{:?} is no part of a core dump; wanted [stack], [heap], "
            "anonymous, "
            "file, all or a pattern that begins with /",
            rule.pattern);
      }
    }
    return {};
  }
  if (words[0] == "environment") {
    return AddRules(words, environment_);
  }
  if (words.size() == 3 && words[0] == "arguments" &&
      (words[1] == "drop-after" || words[1] == "drop-value")) {
    std::ranges::copy(
        PartsOf(words[2]),
        std::back_inserter(words[1] == "drop-after" ? options_ : names_));
    return {};
  }
  if (words.size() == 2 && words[1] == "drop" &&
      (words[0] == "start" || words[0] == "inputs")) {
    (words[0] == "start" ? drops_start_ : drops_inputs_) = true;
    return {};
  }
  return InvalidArgument(
      "{:?} begins no rule of this form; wanted core|environment keep|drop "
      "LIST, arguments drop-after|drop-value LIST, start drop, or inputs drop",
      words[0]);
}

Status RedactionRules::AddRules(const std::vector<std::string>& words,
                                std::vector<Rule>& to) const {
  if (words.size() != 3 || (words[1] != "keep" && words[1] != "drop")) {
    return InvalidArgument(
        "wanted: {} keep|drop LIST, names with commas and "
        "without spaces between them",
        words[0]);
  }
  for (std::string& part : PartsOf(words[2])) {
    to.push_back({.drop = words[1] == "drop", .pattern = std::move(part)});
  }
  return {};
}

bool RedactionRules::DropsSegment(SegmentKind kind,
                                  const std::string& path) const {
  const auto rule = std::ranges::find_if(core_, [&](const Rule& r) {
    return MatchesSegment(r.pattern, kind, path);
  });
  return rule != core_.end() && rule->drop;
}

bool RedactionRules::NamesHeap() const {
  return std::ranges::any_of(
      core_, [](const Rule& rule) { return rule.pattern == "[heap]"; });
}

bool RedactionRules::DropsVariable(const std::string& name) const {
  const auto rule = std::ranges::find_if(environment_, [&](const Rule& r) {
    return Matches(r.pattern, name, r.drop ? FNM_CASEFOLD : 0);
  });
  return rule != environment_.end() && rule->drop;
}

const std::string* RedactionRules::PatternForValueOf(
    const std::string& name) const {
  const std::string* option = FindInAnyCase(options_, name);
  return option != nullptr ? option : FindInAnyCase(names_, name);
}

std::vector<DroppedArgument> RedactionRules::DroppedIn(
    const std::vector<std::string>& words) const {
  std::vector<DroppedArgument> found;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string* option = FindInAnyCase(options_, word);
    if (option != nullptr && i + 1 < words.size()) {
      found.push_back({.index = i + 1, .from = 0, .pattern = *option});
    }
    size_t begin = 0;
    for (size_t end = word.find_first_of(kNameEnds); end != std::string::npos;
         end = word.find_first_of(kNameEnds, begin)) {
      const bool is_name = word[end] == '=' || word[end] == ':';
      const std::string* pattern =
          is_name ? PatternForValueOf(word.substr(begin, end - begin))
                  : nullptr;
      begin = end + 1;
      if (pattern != nullptr) {
        found.push_back({.index = i, .from = begin, .pattern = *pattern});
        break;  // all that follows
      }
    }
  }
  return found;
}

}  // namespace clew::recorder
