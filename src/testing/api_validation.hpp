// Pieces of validation that its translation units share.
#pragma once

#include "src/testing/api_kinds.hpp"
#include "src/testing/api_status.hpp"

#include <string>
#include <string_view>

namespace kubeopera::inline v1::testing::api {

namespace words {
extern const char* const subdomain;
extern const char* const label;
extern const char* const dns1035;
extern const char* const label_value;
extern const char* const qualified_name;
extern const char* const immutable;
}  // namespace words

bool qualified_part_ok(std::string_view s) noexcept;
bool qualified_name_ok(std::string_view s) noexcept;
void check_labels(const json::object* labels, const std::string& path, problems& out);
void check_name(const kind_info& kind, std::string_view name, const std::string& path, problems& out);

void check_service(const kind_info& kind, const json::object& o, problems& out);
void check_ingress(const kind_info& kind, const json::object& o, problems& out);
void check_hpa(const kind_info& kind, const json::object& o, problems& out);
void check_pdb(const kind_info& kind, const json::object& o, problems& out);
void check_lease(const kind_info& kind, const json::object& o, problems& out);

}  // namespace kubeopera::inline v1::testing::api
