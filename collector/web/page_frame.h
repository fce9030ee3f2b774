#ifndef CLEW_COLLECTOR_WEB_PAGE_FRAME_H_
#define CLEW_COLLECTOR_WEB_PAGE_FRAME_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/web/html.h"

namespace clew::collector::web {

// What is the same on all pages: head, navigation, and the small pieces that
// several of them show.

struct PageContext {
  int64_t now_s = 0;
  std::string client_options;  // WebOptions::client_options
  // Whether the store has lost a part of a bundle; empty: of none.
  std::function<bool(const BundleId&)> is_damaged{};

  bool IsDamaged(const BundleId& id) const {
    return is_damaged && is_damaged(id);
  }
};

// Rows of a list on one page.
inline constexpr uint64_t kRowsPerPage = 50;

// The path of the style sheet; another one for other contents.
const std::string& StylePath();
std::string_view StyleSheet();

// Which entry of the navigation a page belongs to.
enum class Section : uint8_t { kGroups, kBundles, kHosts, kNone };

// A whole page; `main` writes what is below the navigation.
std::string WritePage(std::string_view title, Section section,
                      const std::function<void(HtmlWriter&)>& main);

// One word for a state ("witness"), as in a query.
std::string_view StateName(BundleState state);

// The page's heading, of a text from outside; smaller where it is long.
void WriteHeading(HtmlWriter& html, std::string_view text);
// "name=value&", encoded, of a query; empty where the value is.
std::string FieldOf(const char* name, std::string_view value);
// Fields of an address, in the order in which it has them.
using AddressFields = std::vector<std::pair<const char*, std::string>>;
// The same for a form that keeps them; empty ones are left out.
void WriteHiddenFields(HtmlWriter& html, const AddressFields& fields);
// A version as a line has room for it: the first digits of a build-id, of a
// long text the begin.
std::string ShortVersion(std::string_view version);
// "bank 1.4.2: SIGABRT in Deposit" of "bank: SIGABRT in Deposit", which may
// lack the program. What is empty is left out.
std::string TitleOf(std::string_view title, std::string_view program,
                    std::string_view version);
// Whether a group is resolved, or seen again; nothing of one that is open.
void WriteMark(HtmlWriter& html, const GroupMark& mark);
// The state with its colour, and `why` (a line for people) if not empty.
void WriteState(HtmlWriter& html, BundleState state, std::string_view why);
// A time in UTC and how long ago that was.
void WriteTime(HtmlWriter& html, int64_t time_s, int64_t now_s);
// The first digits of a digest, the whole on hovering.
void WriteShortId(HtmlWriter& html, std::string_view hex);
inline constexpr size_t kShortIdDigits = 12;
// What a list says that has nothing to show, and what to do about it.
void WriteEmpty(HtmlWriter& html, std::string_view what,
                const std::function<void()>& advice);

// The search of a list at `path`; `all` leads back to the whole list.
struct Search {
  std::string path;
  std::string text;  // that is searched for; empty: nothing
  std::string placeholder;
  std::string all;
  AddressFields kept{};  // that the search leaves as they are
};
void WriteSearch(HtmlWriter& html, const Search& search);
// How a first bundle gets here.
void WriteUploadAdvice(HtmlWriter& html, const PageContext& context);

// "1-50 of 1,234", and links to the pages before and behind. `path_and_query`
// ends in '?' or '&'.
void WritePaging(HtmlWriter& html, uint64_t offset, uint64_t shown,
                 uint64_t total, const std::string& path_and_query);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_PAGE_FRAME_H_
