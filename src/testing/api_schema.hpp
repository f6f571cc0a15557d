// The texts that define the built-in types, in the notation of api_types.cpp.
#pragma once

#include <array>
#include <string_view>

namespace kubeopera::inline v1::testing::api {

extern const std::string_view schema_meta;
extern const std::string_view schema_core;
extern const std::string_view schema_pods;
extern const std::string_view schema_groups;

inline std::array<std::string_view, 4> schema_texts() { return {schema_meta, schema_core, schema_pods, schema_groups}; }

}  // namespace kubeopera::inline v1::testing::api
