#ifndef CLEW_TESTS_COLLECTOR_WEB_HTML_TOKENS_H_
#define CLEW_TESTS_COLLECTOR_WEB_HTML_TOKENS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clew::collector::web {

// A tokenizer of HTML (WHATWG, "Tokenization"), as far as a page without
// scripts and raw-text elements has it. It shares no code with what writes the
// pages, and takes what is dangerous rather than what is meant: any '<' before
// a letter or '/' opens a tag, any '"' ends a value.
struct Tag {
  bool is_end = false;
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;  // decoded
};
struct Tokens {
  std::vector<Tag> tags;
  std::string text;    // decoded; a line break for each tag
  std::string broken;  // what a page of ours must never have; empty: nothing
};
Tokens TokensOf(std::string_view html);

// The text between the tags of <body>, tags taken out, white space as one.
std::string TextOfHtml(std::string_view html);

}  // namespace clew::collector::web

#endif  // CLEW_TESTS_COLLECTOR_WEB_HTML_TOKENS_H_
