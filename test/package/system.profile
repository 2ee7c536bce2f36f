# For machines that cannot reach Conan's central repository: the dependencies come from the system.
include(default)

[settings]
compiler.cppstd=20

[replace_requires]
boost/*: boost/system
doctest/*: doctest/system
eigen/*: eigen/system

[platform_requires]
boost/system
doctest/system
eigen/system
