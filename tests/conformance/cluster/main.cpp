// The suite; or, with --candidate KUBECONFIG NAMESPACE IDENTITY, one process of an election.
#include "backend.hpp"
#include "candidate.hpp"

#include <iostream>
#include <string_view>

int main(int argc, char** argv) {
  using namespace kubeopera::conformance;
  if (argc == 5 && std::string_view(argv[1]) == "--candidate") return run_candidate(argv[2], argv[3], argv[4]);
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  std::cout << "backend: " << the_backend().kind() << "\n";
  int failed = RUN_ALL_TESTS();
  close_backend();
  return failed;
}
