#ifndef CLEW_COLLECTOR_WEB_TABLES_H_
#define CLEW_COLLECTOR_WEB_TABLES_H_

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/web/html.h"
#include "collector/web/page_frame.h"

namespace clew::collector::web {

struct Column {
  const char* name;
  const char* css_class;  // "" or a class of its cells
};
using Columns = std::initializer_list<Column>;

// A table with a header row. Roles are given in words, because a narrow screen
// shows rows as blocks, and browsers then forget that it was a table.
void WriteTable(HtmlWriter& html, const char* label, Columns columns,
                const std::function<void()>& rows);
// REQUIRES: `column` is of the table's columns, in order.
void WriteCell(HtmlWriter& html, const Column& column,
               const std::function<void()>& content);

// What a group or a bundle is called: program, latest version, what failed.
std::string TitleOf(const GroupRow& group);
std::string TitleOf(const BundleRow& bundle);

// The first `most` hosts of a group, as links, and how many more there are.
void WriteHosts(HtmlWriter& html, const GroupRow& group, size_t most);

void WriteGroupTable(HtmlWriter& html, const PageContext& context,
                     const std::vector<GroupRow>& groups);
void WriteBundleTable(HtmlWriter& html, const PageContext& context,
                      const std::vector<BundleRow>& bundles);

// The rows from `offset` on, and links to the pages around; `address` is that
// of the page and ends in '?' or '&'.
void WriteBundleList(HtmlWriter& html, const PageContext& context,
                     const std::string& address, uint64_t offset,
                     const ListPage<BundleRow>& bundles);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_TABLES_H_
