"""How things look: tables, figures and pages, whatever they show."""
