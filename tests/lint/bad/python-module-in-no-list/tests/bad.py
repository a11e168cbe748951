import scipy
