#ifndef CLEW_COLLECTOR_WEB_HTML_H_
#define CLEW_COLLECTOR_WEB_HTML_H_

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace clew::collector::web {

// What a page shows of one text from outside; the rest is counted in it.
inline constexpr size_t kTextBytesMax = 4096;

// Text for a page or an attribute's value in quotes: UTF-8 whatever came, no
// character that HTML gives a meaning, and none that is not seen as itself:
// controls and those that turn the order of reading are shown as "\u{202e}".
// Longer than kTextBytesMax: cut, and says so.
std::string EscapeHtml(std::string_view text);

struct Attribute {
  const char* name;
  std::string value;
};
using Attributes = std::initializer_list<Attribute>;

// Writes one page. There is no way to put in text that is not escaped, and
// every element is closed, so a page has the elements that its function names
// and no other. Names of elements and attributes are ours, never foreign.
class HtmlWriter {
 public:
  HtmlWriter() : html_("<!DOCTYPE html>\n") {}

  // <name attributes>body()</name>
  template <std::invocable Body>
  void In(const char* name, Attributes attributes, const Body& body) {
    Open(name, attributes);
    body();
    Close(name);
  }
  // <name attributes>text</name>
  void Element(const char* name, Attributes attributes, std::string_view text);
  void Element(const char* name, std::string_view text) {
    Element(name, {}, text);
  }
  // An element that has no content and no end.
  void Void(const char* name, Attributes attributes);
  void Text(std::string_view text);
  // Text from outside: what it does to the order of reading stays in it.
  void Foreign(std::string_view text) { Element("bdi", text); }

  // The page. REQUIRES: every body has returned; call it once.
  std::string Take();

 private:
  void Open(const char* name, Attributes attributes);
  void Close(const char* name);

  std::string html_;
  size_t depth_ = 0;
};

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_HTML_H_
