// Simulates another Boost version that a program finds before the one coaccel was built with.
#include_next <boost/version.hpp>
#undef BOOST_VERSION
#define BOOST_VERSION 999999
