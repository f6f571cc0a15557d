// The manifest module for Python: conversion under the GIL, rendering without it.
#include "convert.hpp"

#include <kubeopera/manifest/crds.hpp>
#include <kubeopera/manifest/render.hpp>

#include <string>
#include <utility>

namespace py = pybind11;

namespace kubeopera::python {
namespace {

struct input {
  manifest::app_spec app;
  manifest::render_context context;
};

result<input> read_input(const json::value& app, const json::value& context) {
  input in;
  KUBEOPERA_TRY(in.app, manifest::read_app_spec(app));
  auto decoded = json::decode<manifest::render_context>(context);
  if (!decoded) {
    auto failure = decoded.error();
    return error(errc::invalid_argument, "InvalidContext", "the render context is not valid")
        .with_violations(failure.violations());
  }
  in.context = std::move(*decoded);
  return in;
}

// Runs f without the GIL and raises its error with it.
template <class F>
auto released(F f) {
  auto outcome = [&] {
    py::gil_scoped_release release;
    return f();
  }();
  if (!outcome) raise(outcome.error());
  return std::move(*outcome);
}

py::dict render(const py::object& app, const py::object& context) {
  auto a = to_json(app);
  auto c = to_json(context);
  auto out = released([&]() -> result<manifest::rendered> {
    KUBEOPERA_TRY(auto in, read_input(a, c));
    return manifest::render(in.app, in.context);
  });
  py::dict files;
  for (const auto& [name, content] : out.files) files[py::str(name)] = py::str(content);
  return files;
}

std::string input_hash(const py::object& app, const py::object& context) {
  auto a = to_json(app);
  auto c = to_json(context);
  return released([&]() -> result<std::string> {
    KUBEOPERA_TRY(auto in, read_input(a, c));
    return manifest::input_hash(in.app, in.context);
  });
}

py::list validate(const py::object& app) {
  auto a = to_json(app);
  std::vector<violation> wrong;
  {
    py::gil_scoped_release release;
    if (auto r = manifest::read_app_spec(a); !r) wrong = r.error().violations();
  }
  py::list out;
  for (const auto& v : wrong) out.append(py::make_tuple(v.pointer, v.message));
  return out;
}

py::list crds() {
  py::list out;
  for (auto& o : manifest::crds()) out.append(from_json(std::move(o)));
  return out;
}

}  // namespace

void add_manifest(py::module_& m) {
  m.def("render", &render, py::arg("app"), py::arg("context"));
  m.def("validate", &validate, py::arg("app"));
  m.def("input_hash", &input_hash, py::arg("app"), py::arg("context"));
  m.def("crds", &crds);
}

}  // namespace kubeopera::python
