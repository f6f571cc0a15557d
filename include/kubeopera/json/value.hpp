// The JSON document type: Boost.JSON's, under our names, with lookups that never throw.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::json {

using boost::json::array;
using boost::json::kind;
using boost::json::object;
using boost::json::value;

/// The value under a path of object keys, or null when a step is missing or not an object.
const value* find(const object& o, std::initializer_list<std::string_view> path) noexcept;
const value* find(const value& v, std::initializer_list<std::string_view> path) noexcept;
/// The value an RFC 6901 pointer names, or null.
const value* find_pointer(const value& v, std::string_view pointer);
/// Typed lookups; fallback where missing or of another type.
std::string_view get_string(const object& o, std::initializer_list<std::string_view> path,
                            std::string_view fallback = {}) noexcept;
std::int64_t get_int(const object& o, std::initializer_list<std::string_view> path, std::int64_t fallback = 0) noexcept;
bool get_bool(const object& o, std::initializer_list<std::string_view> path, bool fallback = false) noexcept;
const object* get_object(const object& o, std::initializer_list<std::string_view> path) noexcept;
const array* get_array(const object& o, std::initializer_list<std::string_view> path) noexcept;
/// The object at key, made (replacing what is not an object) where missing.
object& ensure_object(object& parent, std::string_view key);
array& ensure_array(object& parent, std::string_view key);
/// A string view of a JSON string value; empty for other kinds.
std::string_view as_view(const value& v) noexcept;
/// Appends one escaped step to a JSON pointer.
std::string pointer_step(std::string_view base, std::string_view key);
std::string pointer_step(std::string_view base, std::size_t index);

}  // namespace kubeopera::inline v1::json
