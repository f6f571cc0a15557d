// Between Python objects and JSON values, and from errors to the Python exception. All functions need the GIL.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/json/value.hpp>

#include <pybind11/pybind11.h>

namespace kubeopera::python {

/// None, bool, int (64 bits), float, str, sequences and mappings with str keys. Raises TypeError or ValueError on others.
json::value to_json(const pybind11::handle& object);
pybind11::object from_json(const json::value& v);

/// Raises kubeopera.Error.
[[noreturn]] void raise(const error& e);

}  // namespace kubeopera::python
