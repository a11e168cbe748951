import sys
import numpy as np
