// Conversions; nothing here runs without the GIL.
#include "convert.hpp"

#include <string>

namespace py = pybind11;

namespace kubeopera::python {
namespace {

constexpr int max_depth = 64;

json::value integer(const py::handle& object) {
  int overflow = 0;
  long long i = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (i == -1 && PyErr_Occurred()) throw py::error_already_set();
  if (overflow == 0) return static_cast<std::int64_t>(i);
  if (overflow > 0) {
    auto u = PyLong_AsUnsignedLongLong(object.ptr());
    if (!PyErr_Occurred()) return static_cast<std::uint64_t>(u);
    PyErr_Clear();
  }
  throw py::value_error("an integer does not fit 64 bits");
}

json::value convert(const py::handle& object, int depth) {
  if (depth > max_depth) throw py::value_error("nested deeper than 64 levels");
  if (object.is_none()) return nullptr;
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  if (py::isinstance<py::int_>(object)) return integer(object);
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (py::isinstance<py::str>(object)) return json::value(object.cast<std::string>());
  if (py::isinstance<py::dict>(object)) {
    json::object out;
    for (const auto& item : py::reinterpret_borrow<py::dict>(object)) {
      if (!py::isinstance<py::str>(item.first)) throw py::type_error("keys must be str");
      out[item.first.cast<std::string>()] = convert(item.second, depth + 1);
    }
    return out;
  }
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    json::array out;
    for (const auto& item : object) out.push_back(convert(item, depth + 1));
    return out;
  }
  if (PyMapping_Check(object.ptr()) && !PySequence_Check(object.ptr()))
    return convert(py::dict(py::reinterpret_borrow<py::object>(object)), depth);
  throw py::type_error("cannot use a value of type " + std::string(py::str(py::type::of(object).attr("__name__"))));
}

}  // namespace

json::value to_json(const py::handle& object) { return convert(object, 0); }

py::object from_json(const json::value& v) {
  switch (v.kind()) {
    case json::kind::null:
      return py::none();
    case json::kind::bool_:
      return py::bool_(v.get_bool());
    case json::kind::int64:
      return py::int_(v.get_int64());
    case json::kind::uint64:
      return py::int_(v.get_uint64());
    case json::kind::double_:
      return py::float_(v.get_double());
    case json::kind::string:
      return py::str(v.get_string().data(), v.get_string().size());
    case json::kind::array: {
      py::list out;
      for (const auto& e : v.get_array()) out.append(from_json(e));
      return std::move(out);
    }
    case json::kind::object: {
      py::dict out;
      for (const auto& m : v.get_object()) out[py::str(m.key().data(), m.key().size())] = from_json(m.value());
      return std::move(out);
    }
  }
  return py::none();
}

void raise(const error& e) {
  auto cls = py::module_::import("kubeopera.errors").attr("Error");
  py::list violations;
  for (const auto& v : e.violations()) violations.append(py::make_tuple(v.pointer, v.message));
  auto exception = cls(e.message(), std::string(to_string(e.code())), e.reason(), violations);
  PyErr_SetObject(cls.ptr(), exception.ptr());
  throw py::error_already_set();
}

}  // namespace kubeopera::python
