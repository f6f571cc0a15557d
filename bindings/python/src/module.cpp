// The extension module kubeopera._native: one add_… a module of the SDK.
#include <pybind11/pybind11.h>

namespace kubeopera::python {
void add_manifest(pybind11::module_& m);
}

PYBIND11_MODULE(_native, m) {
  m.doc() = "Native half of the kubeopera package";
  kubeopera::python::add_manifest(m);
}
